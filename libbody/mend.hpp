// Makes of a body that the parser refused one that it takes, where it is what other readers take:
// numbers beyond 64 bits, halves of surrogate pairs, NaN and Infinity. Knows no fields.
#pragma once

#include <cstddef>

namespace pickd::body {

// Changes the text in place and keeps its length; whether anything was changed. Numbers become near
// ones, halves of surrogate pairs the character that stands for what cannot be shown.
bool mend(char* text, std::size_t size);

}  // namespace pickd::body
