// The English words that join what a picture shows.
#pragma once

#include <optional>
#include <string_view>

#include "demo/scene.h"

namespace octet::demo {

bool is_article(std::string_view word);
bool is_pronoun(std::string_view word);          // for what was named before: it, them
bool is_plain_adjective(std::string_view word);  // says nothing about a colour: bright, solid
bool is_connector(std::string_view word);        // and, with: something new may follow
bool is_preposition(std::string_view word);      // no word that somebody wants painted

// Nouns for letters: "text", "lettering". What follows may be the text, unless it is known.
bool is_letters(std::string_view word);
// Nouns that end what is said of letters: "in a thin font".
bool is_typeface(std::string_view word);
// The next word is the text, whatever it means: "word", "titled".
bool names_a_word(std::string_view word);
// All words that follow are: "saying".
bool names_words(std::string_view word);

std::optional<size_t> number_of(std::string_view word);
std::optional<Size> size_of(std::string_view word);
// How what follows lies to what stands before: "above" puts it below.
std::optional<Order> order_of(std::string_view word);
Order opposite(Order order);

}  // namespace octet::demo
