// Before anything is painted: the theme that was chosen, if it is not the system's.
{
  let theme = null;
  try {
    theme = JSON.parse(localStorage.getItem("octet.theme"));
  } catch {
    // Nothing may be stored here.
  }
  if (theme) document.documentElement.dataset.theme = theme;
}
