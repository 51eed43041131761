#!/usr/bin/env bash
# Run the native tests on an emulated CPU with AVX-512: native/emulate/run.sh [cases] [seconds]
# The test programs, with the machine code that ships, are the only thing that a small Linux runs inside Bochs, which
# implements every instruction of an Ice Lake, VPOPCNTDQ included. Fails where a program fails or where an AVX-512 level
# was not run. It says nothing about speed.
# Needs, by their names in Debian: bochs bochs-term bochsbios vgabios busybox-static cpio isolinux syslinux-common xorriso;
# a kernel for virtual machines, which is the file that KERNEL names, else apt downloads the package of one; and the
# project's Python environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
cases=${1:-30}
seconds=${2:-3600}
build=build/emulate
machine=$build/machine
python=${PYTHON:-.venv/bin/python}

# Static: the emulated machine has no libraries. Not split: the AVX-512 levels as they ship.
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DEBNET_NATIVE_TESTS=ON -DEBNET_SPLIT_AVX512=OFF \
  -DCMAKE_EXE_LINKER_FLAGS=-static >/dev/null
cmake --build "$build" --parallel "$(nproc)"

rm -rf "$machine"
mkdir -p "$machine"/{root/dev,disc}
tests=()
for path in "$build"/native/tests/*_test; do
  cp "$path" "$machine/root/"
  name=$(basename "$path")
  case $name in
    # Those of files, below; and what does not depend on instructions: the C API's, and threads (Bochs has one CPU).
    engine_test | sizes_test | capi_test | threads_test) ;;
    # Not AVX2's, which any CPU can run: the VCVTPS2PH of AVX in Bochs 2.7 rounds ties up, a CPU's to even.
    kernels_test) tests+=("$name $cases avx512") ;;
    *) tests+=("$name $cases") ;;
  esac
done
"$python" native/fuzz/seeds.py "$machine/root"
tests+=("engine_test float32.ebn" "engine_test float16.ebn" "engine_test int8.ebn" "sizes_test float32.ebn 24 16 19")

if [[ -z ${KERNEL:-} ]]; then
  KERNEL=$(find "$build/kernel/boot" -name 'vmlinuz-*' 2>/dev/null | head -n 1 || true)
fi
if [[ -z $KERNEL ]]; then
  package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $2; exit}')
  (cd "$machine" && apt-get download -q -o APT::Sandbox::User=root "$package")
  dpkg-deb -x "$machine/$package"_*.deb "$build/kernel"
  KERNEL=$(find "$build/kernel/boot" -name 'vmlinuz-*')
fi

cp "$(command -v busybox)" "$machine/root/busybox"
{
  echo "#!/busybox sh"
  for test in "${tests[@]}"; do printf 'echo "== %s"\n/%s\necho "== %s: exit $?"\n' "$test" "$test" "$test"; done
  echo "/busybox sleep 1  # until the serial line has sent all of it"
  echo "/busybox poweroff -f"
} >"$machine/root/init"
chmod +x "$machine/root/init"
(cd "$machine/root" && find . | cpio --quiet -o -H newc) >"$machine/disc/initrd"

# Linux asks whether XSAVE's sizes add up and leaves AVX off where they do not: those that Bochs 2.7 tells of protection
# keys and of the compacted format do not. With the string moves of ERMS the kernel crashes in Bochs while it starts.
cp "$KERNEL" "$machine/disc/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$machine/disc/"
cat >"$machine/disc/isolinux.cfg" <<END
default tests
label tests
  kernel vmlinuz
  append initrd=initrd console=ttyS0 loglevel=1 mitigations=off nokaslr cryptomgr.notests clearcpuid=pku,xsavec,xsaves,erms,fsrm
END
xorriso -as mkisofs -quiet -o "$machine/disc.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table "$machine/disc" 2>"$machine/xorriso.txt"

# The sound that is left on by default aborts where there is no sound card.
cat >"$machine/bochsrc" <<END
cpu: model=corei7_icelake_u, ips=50000000, reset_on_triple_fault=0
memory: guest=256, host=256
ata0-master: type=cdrom, path=$machine/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$machine/serial.txt
display_library: term
speaker: enabled=0
sound: waveoutdrv=dummy
log: $machine/bochs.txt
info: action=ignore
error: action=ignore
END
# Debian's Bochs has its debugger, which waits for a command, and its text display wants a terminal.
echo continue >"$machine/commands"
TERM=xterm timeout "$seconds" script -qec "bochs -q -f $machine/bochsrc -rc $machine/commands" /dev/null \
  </dev/null >"$machine/screen.txt" 2>&1 || true  # Bochs ends with 1 when the machine is switched off

touch "$machine/serial.txt"
tr -d '\r' <"$machine/serial.txt" | tee "$machine/output.txt"
failed=0
for test in "${tests[@]}"; do
  output=$(sed -n "/^== $test\$/,/^== $test: exit/p" "$machine/output.txt")
  if ! grep -q "^== $test: exit 0\$" <<<"$output"; then
    echo "$test: failed, or did not end within $seconds s"
    failed=1
  elif ! grep -qE '^(avx512|vnni)' <<<"$output" || grep -qE '^(avx512|vnni).*: (not run|0 shapes)' <<<"$output"; then
    echo "$test: did not run AVX-512"
    failed=1
  fi
done
exit "$failed"
