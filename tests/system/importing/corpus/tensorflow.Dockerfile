FROM tensorflow/tensorflow:2.17.0-gpu
RUN python -m pip install --upgrade pip
RUN pip install tensorflow-datasets keras-cv
ENV TF_CPP_MIN_LOG_LEVEL 2
EXPOSE 6006
ENTRYPOINT ["python3"]
