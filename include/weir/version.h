/* weir/version.h - the version of the headers, as in CMakeLists.txt. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#define WEIR_VERSION "0.1.0"

#endif
