FROM python:3.12
ONBUILD COPY . /app
ONBUILD RUN pip install -r /app/requirements.txt
