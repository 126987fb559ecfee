#!/bin/sh
# Installs the reprobuild of a bundle, and the programs that it starts, without a network:
#   tar --occurrence=1 -xOf BUNDLE install.sh | sh -s BUNDLE FOLDER
set -eu
if [ $# -ne 2 ]; then
  echo "usage: install.sh BUNDLE FOLDER" >&2
  exit 2
fi
bundle=$(realpath "$1")
mkdir -p "$2"
folder=$(cd "$2" && pwd -P)
if [ -n "$(ls -A "$folder")" ]; then
  echo "$folder is not empty: name a new folder" >&2 # pip would leave an earlier reprobuild in it as it is
  exit 2
fi
tar -C "$folder" -xf "$bundle" reprobuild debian

# A Python that the wheels are for, and that can make a virtual environment.
usable() {
  minor=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 1
  case " @PYTHONS@ " in *" $minor "*) "$1" -c 'import ensurepip' 2>/dev/null ;; *) return 1 ;; esac
}
find_python() {
  for each in python3 $(printf 'python%s ' @PYTHONS@); do
    if usable "$each"; then python=$each && return 0; fi
  done
  return 1
}

missing=
for program in crun mmdebstrap mount; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
command -v newuidmap >/dev/null || missing="$missing uidmap"
find_python || missing="$missing python3-venv"
if [ "$missing" = " uidmap" ] && [ "$(id -u)" != 0 ]; then
  missing= # a user's image needs it, and says so
fi
if [ -n "$missing" ]; then
  VERSION_CODENAME=unknown PRETTY_NAME="this system"
  . /etc/os-release
  if ! [ -d "$folder/debian/$VERSION_CODENAME" ]; then
    echo "the bundle has no packages for $PRETTY_NAME: install$missing (a Python of @PYTHONS@) first" >&2
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "run this as root: it installs$missing" >&2
    exit 1
  fi
  # The same trust as in the bundle's reprobuild, which root runs too.
  mkdir -p "$folder/apt"
  printf 'Types: deb\nURIs: file:%s\nSuites: ./\nTrusted: yes\n' \
    "$(printf %s "$folder/debian/$VERSION_CODENAME" | sed 's/ /%20/g')" >"$folder/apt/bundle.sources"
  set -- -qq -o "Dir::Etc::SourceParts=$folder/apt" -o Dir::Etc::SourceList=/dev/null \
    -o "Dir::State::Lists=$folder/apt/lists" -o APT::Sandbox::User=root -o Acquire::Languages=none \
    -o APT::Get::List-Cleanup=0
  mkdir -p "$folder/apt/lists/partial"
  apt-get "$@" update
  # Word by word: these are names of packages.
  DEBIAN_FRONTEND=noninteractive apt-get "$@" install -y --no-install-recommends $missing </dev/null
  find_python
fi
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --isolated --disable-pip-version-check install --quiet --no-index \
  --find-links "$folder/reprobuild" reprobuild
echo "$folder/venv/bin/reprobuild"
