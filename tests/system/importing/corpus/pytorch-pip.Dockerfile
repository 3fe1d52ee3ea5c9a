FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1
WORKDIR /workspace
COPY requirements.txt .
RUN pip install -r requirements.txt
COPY app/ app/
CMD ["python", "-m", "app"]
