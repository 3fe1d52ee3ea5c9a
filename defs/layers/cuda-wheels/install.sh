#!/bin/bash
# Install NVIDIA's compiler beside the CUDA libraries of torch, and make one toolkit of both at /usr/local/cuda.
set -euo pipefail

# The release that torch requires is there already; this adds its other parts. cuobjdump is a package since CUDA 13.2
# only, and reads older code.
pip install "cuda-toolkit[cccl,crt,cudart,nvcc,nvml,nvvm,profiler]==$OPT_CUDA.*" nvidia-cuda-cuobjdump

packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia
readonly packages toolkit=$packages/cu${OPT_CUDA%%.*}
ln -sfn "$toolkit" /usr/local/cuda
ln -sfn lib "$toolkit/lib64" # where nvcc and torch look
for part in cudnn nccl; do
  ln -sf "$packages/$part"/include/*.h "$toolkit/include/"
  ln -sf "$packages/$part"/lib/lib*.so.* "$toolkit/lib/"
done
# The linker takes names without a version.
for library in "$toolkit"/lib/lib*.so.*; do
  ln -sf "${library##*/}" "${library%%.so.*}.so"
done
echo /usr/local/cuda/lib64 >/etc/ld.so.conf.d/cuda.conf
ldconfig

# The driver's libraries are on nodes with GPUs only. NVIDIA's other packages bring stubs of them to link with.
make_stub() { # make_stub LIBRARY HEADER FUNCTIONS
  echo "#include <$2>" | cpp -P -I"$toolkit/include" | grep -oP "\b$3[A-Z]\w*(?=\()" | sort -u |
    sed 's/.*/int &(void) { return 34; }/' | # CUDA_ERROR_STUB_LIBRARY
    gcc -shared -Wl,-soname,"$1.so.1" -x c -o "$toolkit/lib/stubs/$1.so" -
}
mkdir -p "$toolkit/lib/stubs"
make_stub libcuda cuda.h cu
make_stub libnvidia-ml nvml.h nvml

# A host compiler too new for it is refused by its headers.
echo 'int main() {}' >empty.cu
/usr/local/cuda/bin/nvcc -o empty empty.cu
