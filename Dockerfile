# torch-cu121, rendered by reprobuild 0.1.0 from its lock.
# Do not edit it: change the request, then run `reprobuild lock` and `reprobuild render`.
#
#   lock    sha256:e1dde9a55b0664edda833a99fa2afb11d48e5bba1b57786cc4b6561136d10515
#   debian  bookworm, 14 packages
#   cuda    12.1.105
#   cudnn   9.1.0.70
#   nccl    2.20.5
#   numpy   1.26.4
#   python  3.11.2
#   torch   2.4.1
#
# Every byte comes from the context, which `reprobuild render` fills with what the lock names by hash:
#   debian.tar    the Debian root, made of the locked packages alone
#   wheels/       the locked wheels; pip checks their hashes once more
#   reprobuild/   reprobuild's own files
# No step needs a network, so any builder will do: docker build --platform linux/amd64 .

FROM scratch AS debian
ADD debian.tar /

FROM debian AS build
# No bytecode of the build stage's own runs may end up beside Debian's modules.
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
COPY wheels wheels/
COPY reprobuild/requirements.txt ./
# The locked pip runs from its own wheel, inside the environment that it fills. It resolves nothing, since the
# requirements are the whole lock. Bytecode is left to the next step, which makes the same every time.
RUN umask 022 \
 && /usr/bin/python3.11 -m venv --without-pip /opt/venv \
 && /opt/venv/bin/python wheels/pip-24.2-py3-none-any.whl/pip --isolated --no-input --no-cache-dir \
      --disable-pip-version-check install --no-index --find-links wheels --no-deps --no-compile \
      --only-binary :all: --require-hashes --requirement requirements.txt
COPY reprobuild ./
RUN umask 022 \
 && install -D -m 0644 constraints.txt /opt/reprobuild/constraints.txt \
 && install -D -m 0644 golden.json /opt/reprobuild/golden.json \
 && install -D -m 0644 kernels.py /opt/reprobuild/kernels.py \
 && install -D -m 0644 pylock.toml /opt/reprobuild/pylock.toml \
 && install -D -m 0644 selftest.py /opt/reprobuild/selftest.py \
 && install -D -m 0644 reprobuild.pth /opt/venv/lib/python3.11/site-packages/reprobuild.pth \
 && install -D -m 0644 reprobuild_hook.py /opt/venv/lib/python3.11/site-packages/reprobuild_hook.py \
 && /usr/bin/python3.11 bytecode.py --venv /opt/venv \
 && /usr/bin/python3.11 manifest.py /opt/venv /usr > manifest.tsv \
 && install -m 0644 manifest.tsv /opt/reprobuild/manifest.tsv

FROM debian
COPY --from=build /opt/venv /opt/venv/
COPY --from=build /opt/reprobuild /opt/reprobuild/
ENV \
    CUBLAS_WORKSPACE_CONFIG=":4096:8" \
    LANG="C.UTF-8" \
    MKL_CBWR="AUTO" \
    MKL_DYNAMIC="FALSE" \
    MKL_NUM_THREADS="1" \
    NCCL_ALGO="Ring" \
    NCCL_PROTO="Simple" \
    NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_TF32_OVERRIDE="0" \
    NVIDIA_VISIBLE_DEVICES="all" \
    OMP_DYNAMIC="FALSE" \
    OMP_NUM_THREADS="1" \
    OPENBLAS_NUM_THREADS="1" \
    PATH="/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    PIP_CONSTRAINT="/opt/reprobuild/constraints.txt" \
    PYTHONHASHSEED="0" \
    REPROBUILD_PROFILE="strict" \
    TORCHINDUCTOR_DETERMINISTIC="1" \
    UV_CONSTRAINT="/opt/reprobuild/constraints.txt" \
    VIRTUAL_ENV="/opt/venv"
LABEL \
    dev.reprobuild.cuda="12.1.105" \
    dev.reprobuild.cudnn="9.1.0.70" \
    dev.reprobuild.debian="bookworm" \
    dev.reprobuild.driver="525.60.13" \
    dev.reprobuild.epoch="1726358400" \
    dev.reprobuild.lock="sha256:e1dde9a55b0664edda833a99fa2afb11d48e5bba1b57786cc4b6561136d10515" \
    dev.reprobuild.nccl="2.20.5" \
    dev.reprobuild.numpy="1.26.4" \
    dev.reprobuild.profile="strict" \
    dev.reprobuild.python="3.11.2" \
    dev.reprobuild.request="sha256:0eb66c9a7455582fddd02c786513ff735cde1ffce59b2979de45f16d855b181a" \
    dev.reprobuild.source="/opt/reprobuild/pylock.toml" \
    dev.reprobuild.torch="2.4.1" \
    dev.reprobuild.version="0.1.0" \
    org.opencontainers.image.created="2024-09-15T00:00:00Z" \
    org.opencontainers.image.description="PyTorch 2.4.1, CUDA 12.1.105, cuDNN 9.1.0.70, NCCL 2.20.5, Python 3.11.2" \
    org.opencontainers.image.title="torch-cu121" \
    org.opencontainers.image.version="2.4.1"
WORKDIR /
CMD ["python3"]
