#!/bin/sh
# Builds the root file system of the cluster DNS image: the runtime, the libraries that it and the addon of koffi are linked with, and the
# server. There is no shell and no package manager. docs/decisions/image.md.
#   server-root.sh FROM TO    FROM: the root file system of a Debian that has all of it
set -eu
from=$1 to=$2
mkdir -p "$to/lib" "$to/lib64" "$to/etc" "$to/usr/local/bin" "$to/ndots/node_modules" "$to/var/lib/dpkg/status.d"
mkdir -m 1777 "$to/tmp"
cp -a "$from/usr/local/bin/node" "$from/usr/local/bin/ndots" "$from/usr/local/bin/coredns" "$to/usr/local/bin/"
cp -a "$from/coredns" "$to/"

# The linker finds libraries in /lib, whatever the processor.
for library in libatomic.so.1 libc.so.6 libdl.so.2 libgcc_s.so.1 libm.so.6 libpthread.so.0 libstdc++.so.6; do
  cp -L "$(find "$from/lib/" "$from/usr/lib/" -path "*-linux-gnu/$library" | head -n 1)" "$to/lib/"
done
# The linker itself, where programs name it: /lib64 on x86-64, /lib on arm64.
for linker in "$from"/lib64/ld-linux-x86-64.so.2 "$from"/lib/ld-linux-aarch64.so.1; do
  if [ -e "$linker" ]; then cp -L "$linker" "$to${linker#"$from"}"; fi
done
# Scanners read here which Debian packages the libraries are of.
for package in libatomic1 libc6 libgcc-s1 libstdc++6; do
  dpkg-query --admindir="$from/var/lib/dpkg" -s "$package" > "$to/var/lib/dpkg/status.d/$package"
  mkdir -p "$to/usr/share/doc/$package"
  cp -L "$from/usr/share/doc/$package/copyright" "$to/usr/share/doc/$package/"
done
cp "$from/etc/os-release" "$to/etc/"
echo 'hosts: files dns' > "$to/etc/nsswitch.conf"
printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' > "$to/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' > "$to/etc/group"

# Of koffi only the addon is loaded. The directory of the package says that it is installed.
(cd "$from/ndots" && cp -a --parents node_modules/koffi/package.json node_modules/@koromix/koffi-linux-*/linux_*/koffi.node "$to/ndots/")
cp -a "$from/ndots/package.json" "$from/ndots/examples" "$to/ndots/"
