#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Uploads all files of a folder through boto3: upload.py URL BUCKET FOLDER PREFIX."""

import os
import sys

import boto3
from botocore.config import Config


def main():
    url, bucket, folder, prefix = sys.argv[1:]
    settings = Config(s3={"addressing_style": "path"})
    s3 = boto3.client("s3", endpoint_url=url, config=settings)
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            key = prefix + os.path.relpath(file, folder)
            with open(file, "rb") as body:
                s3.put_object(Bucket=bucket, Key=key, Body=body)


if __name__ == "__main__":
    main()
