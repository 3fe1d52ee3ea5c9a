FROM python:3.12-alpine
RUN pip install flask
