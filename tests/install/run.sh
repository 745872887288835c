#!/usr/bin/env bash
# Installs a build and uses it from outside, each way that is promised: find_package, pkg-config
# with a plain compiler line, add_subdirectory, a shared library; from C++ and from C.
# usage: run.sh build-folder
set -euo pipefail

build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
scratch=$build/install_test
prefix=$scratch/prefix
rm -rf "$scratch"
mkdir -p "$scratch"

expected=$'allowed remaining=1\nallowed remaining=0\ndenied remaining=0'

expect() {  # what it is, program
  local printed
  printed=$("$2")
  if [[ $printed != "$expected" ]]; then
    printf '%s: expected\n%s\nbut it printed\n%s\n' "$1" "$expected" "$printed"
    exit 1
  fi
  printf '%s: builds, runs, decides\n' "$1"
}

fail() {
  printf '%s\n' "$@"
  exit 1
}

# An outside user has their own flags and generator. The library is compiled from source twice, with
# the same flags, so that a compiler cache, where there is one, saves the second time, and both the
# next time.
unset CXXFLAGS LDFLAGS
export CCACHE_BASEDIR=$source CCACHE_NOHASHDIR=1
launcher=()
if ccache=$(command -v ccache); then
  launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=$ccache")
fi
quietly() {
  "$@" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")" "failed: $*"
}
configure() { quietly cmake -G Ninja -DCMAKE_BUILD_TYPE=Release "$@"; }
compile() { quietly cmake --build "$@"; }

quietly cmake --install "$build" --prefix "$prefix"

# Only include/weir is installed, and no header of it reaches for anything that is not.
installed=$(cd "$prefix/include" && find . -type f | sort)
promised=$(cd "$source/include" && find . -type f | sort)
[[ $installed == "$promised" ]] || fail "installed headers differ from include/:" "$installed"

configure -S "$here/outside" -B "$scratch/found" -DCMAKE_PREFIX_PATH="$prefix"
compile "$scratch/found"
expect find_package "$scratch/found/outside"
expect "find_package from C" "$scratch/found/outside_c"
expect "find_package of rules" "$scratch/found/outside_rules"
expect "find_package of redis" "$scratch/found/outside_redis"

# A moved tree still works: nothing installed names the folder it was first put in.
mv "$prefix" "$scratch/moved"
! grep -rIl --exclude='*.a' "$prefix" "$scratch/moved" || fail "an installed file names $prefix"
pc=$(find "$scratch/moved" -name weir.pc)
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags <<<"$(pkg-config --cflags --libs weir)"
"${CXX:-c++}" -std=c++20 "$here/outside/main.cc" -o "$scratch/plain" "${flags[@]}"
expect pkg-config "$scratch/plain"
read -ra flags <<<"$(pkg-config --cflags --libs weir-rules)"
"${CXX:-c++}" -std=c++20 "$here/outside/rules.cc" -o "$scratch/plain_rules" "${flags[@]}"
expect "pkg-config of rules" "$scratch/plain_rules"
read -ra flags <<<"$(pkg-config --cflags --libs weir-redis)"
"${CXX:-c++}" -std=c++20 "$here/outside/redis.cc" -o "$scratch/plain_redis" "${flags[@]}"
expect "pkg-config of redis" "$scratch/plain_redis"

# weir/asio.h is for those who have Boost; nobody else needs it.
if printf '#include <boost/asio.hpp>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; then
  read -ra flags <<<"$(pkg-config --cflags weir)"
  printf '#include "weir/asio.h"' | quietly "${CXX:-c++}" -std=c++20 -fsyntax-only "${flags[@]}" \
    -x c++ -
  printf 'weir/asio.h: compiles\n'
fi

# The same from C, whose users get the shared library.
read -ra flags <<<"$(pkg-config --cflags --libs weir-c)"
"${CC:-cc}" -std=c99 "$here/outside/main.c" -o "$scratch/plain_c" "${flags[@]}" \
  -Wl,-rpath,"$(pkg-config --variable=libdir weir-c)"
expect "pkg-config from C" "$scratch/plain_c"
for page in man1/weir.1 man3/weir.3 man3/weir-node.3 man3/weir-python.3; do
  [[ -f $scratch/moved/share/man/$page ]] || fail "not installed: $page"
done

configure -S "$here/outside" -B "$scratch/sub" -DWEIR_SOURCE="$source" "${launcher[@]}"
compile "$scratch/sub"
expect add_subdirectory "$scratch/sub/outside"
# As a part of another build weir is a library: no tests, no programs, no rule of theirs changed.
extra=$(find "$scratch/sub" -type f -perm -u+x -not -path '*/CMakeFiles/*' -not -name outside)
[[ -z $extra ]] || fail "add_subdirectory built more than the library:" "$extra"

# Nothing of the server is installed, so none of it is built.
configure -S "$source" -B "$scratch/shared" -DBUILD_SHARED_LIBS=ON -DWEIR_BUILD_TESTS=OFF \
  -DWEIR_BUILD_APPS=OFF -DWEIR_BUILD_SERVER=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_WARNINGS=OFF \
  -DWEIR_TOOLS=OFF "${launcher[@]}"
compile "$scratch/shared"
quietly cmake --install "$scratch/shared" --prefix "$scratch/shared_prefix"
configure -S "$here/outside" -B "$scratch/found_shared" \
  -DCMAKE_PREFIX_PATH="$scratch/shared_prefix"
compile "$scratch/found_shared"
expect "shared library" "$scratch/found_shared/outside"
expect "shared library from C" "$scratch/found_shared/outside_c"
expect "shared library of rules" "$scratch/found_shared/outside_rules"

# Both need the C++ runtime and nothing else.
for name in libweir.so libweirxx.so; do
  library=$(find "$scratch/shared_prefix" -name "$name")
  needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  while read -r other; do
    case $other in
      libstdc++.so.* | libgcc_s.so.* | libc.so.* | libm.so.* | libpthread.so.* | ld-linux*) ;;
      *) fail "$name needs $other" ;;
    esac
  done <<<"$needed"
  printf '%s needs only: %s\n' "$name" "$(tr '\n' ' ' <<<"$needed")"
done
rm -rf "$scratch"
