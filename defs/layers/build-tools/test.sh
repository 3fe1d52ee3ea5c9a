#!/bin/bash
# Every tool is there and the compilers make programs that run, C++20 and Python's headers included.
set -euo pipefail

for tool in gcc g++ make cmake ninja pkg-config autoconf automake libtoolize patch file git curl xz bzip2; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing" >&2
    exit 1
  fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# PyTorch's headers ask for C++20 from 2.14 on.
printf '#include <span>\nint main() { int a[3] = {}; return std::span(a).size() - 3; }\n' >std.cc
g++ -std=c++20 std.cc -o std
./std

if command -v python >/dev/null; then
  include=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  printf '#include <Python.h>\nint main(void) { return 0; }\n' >header.c
  gcc "-I$include" header.c -o header
  ./header
fi

printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_executable(p header.c)\n' >CMakeLists.txt
printf 'int main(void) { return 0; }\n' >header.c
if ! { cmake -G Ninja -S . -B build && cmake --build build; } >log 2>&1; then
  cat log >&2
  exit 1
fi
build/p
