// Lists of registers for instructions that take many: wgmma's accumulators.
//
// OCTET_NAMES_n is the text "%0, %1, ... %(n - 1)"; OCTET_ACC_n(constraint, j) the operands for it,
// acc[j][0], acc[j][1], ... of an array [][4] named `acc`.
#pragma once

#define OCTET_NAMES_32                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OCTET_NAMES_40 OCTET_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define OCTET_NAMES_48 OCTET_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define OCTET_NAMES_56 OCTET_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define OCTET_NAMES_64 OCTET_NAMES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define OCTET_NAMES_72 OCTET_NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define OCTET_NAMES_80 OCTET_NAMES_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define OCTET_NAMES_88 OCTET_NAMES_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define OCTET_NAMES_96 OCTET_NAMES_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define OCTET_NAMES_128                                                                          \
  OCTET_NAMES_96                                                                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"

#define OCTET_ACC_4(c, j) c(acc[j][0]), c(acc[j][1]), c(acc[j][2]), c(acc[j][3])
#define OCTET_ACC_8(c, j) OCTET_ACC_4(c, j), OCTET_ACC_4(c, (j) + 1)
#define OCTET_ACC_16(c, j) OCTET_ACC_8(c, j), OCTET_ACC_8(c, (j) + 2)
#define OCTET_ACC_32(c, j) OCTET_ACC_16(c, j), OCTET_ACC_16(c, (j) + 4)
#define OCTET_ACC_40(c, j) OCTET_ACC_32(c, j), OCTET_ACC_8(c, (j) + 8)
#define OCTET_ACC_48(c, j) OCTET_ACC_32(c, j), OCTET_ACC_16(c, (j) + 8)
#define OCTET_ACC_56(c, j) OCTET_ACC_48(c, j), OCTET_ACC_8(c, (j) + 12)
#define OCTET_ACC_64(c, j) OCTET_ACC_32(c, j), OCTET_ACC_32(c, (j) + 8)
#define OCTET_ACC_88(c, j) OCTET_ACC_64(c, j), OCTET_ACC_16(c, (j) + 16), OCTET_ACC_8(c, (j) + 20)
#define OCTET_ACC_96(c, j) OCTET_ACC_64(c, j), OCTET_ACC_32(c, (j) + 16)
#define OCTET_ACC_128(c, j) OCTET_ACC_64(c, j), OCTET_ACC_64(c, (j) + 16)
