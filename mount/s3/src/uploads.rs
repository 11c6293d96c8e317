// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects in parts: the trait [`Uploads`] over the client of [`crate::bucket`].

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, EncodingType};
use bytes::Bytes;
use weft_store::{Condition, ETag, Failure, Metadata, Part, Range, StoreError, Upload, Uploads};

use crate::attempts::Attempts;
use crate::bucket::{Bucket, headers, pairs};
use crate::encoding::{copy_source, decode};

#[async_trait]
impl Uploads for Bucket {
    async fn begin_with(&self, key: &str, about: &Metadata) -> Result<Upload, StoreError> {
        let asked = self.asked("CreateMultipartUpload", key);
        let answer = self
            .client
            .create_multipart_upload()
            .bucket(&self.name)
            .key(key)
            .set_metadata(pairs(about))
            .set_checksum_algorithm(self.checksum.clone())
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        let Some(id) = answer.upload_id() else {
            return Err(asked.failed(Failure::Unsupported, "no upload id came"));
        };
        Ok(Upload {
            key: key.to_owned(),
            id: id.to_owned(),
        })
    }

    async fn send(&self, upload: &Upload, number: u32, body: Bytes) -> Result<Part, StoreError> {
        let asked = self.asked("UploadPart", &upload.key);
        let answer = self
            .client
            .upload_part()
            .bucket(&self.name)
            .key(&upload.key)
            .upload_id(&upload.id)
            .part_number(number as i32)
            .set_checksum_algorithm(self.checksum.clone())
            .body(ByteStream::from(body))
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        Ok(Part {
            number,
            etag: ETag::new(answer.e_tag().unwrap_or_default()),
            crc64: answer.checksum_crc64_nvme().map(str::to_owned),
        })
    }

    async fn copy_part(
        &self,
        upload: &Upload,
        number: u32,
        source: (&str, &ETag),
        range: Range,
    ) -> Result<Part, StoreError> {
        let asked = self.asked("UploadPartCopy", &upload.key);
        let answer = self
            .client
            .upload_part_copy()
            .bucket(&self.name)
            .key(&upload.key)
            .upload_id(&upload.id)
            .part_number(number as i32)
            .copy_source(copy_source(&self.name, source.0))
            .copy_source_if_match(source.1.as_str())
            .copy_source_range(format!("bytes={}-{}", range.start, range.end - 1))
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        let result = answer.copy_part_result();
        let crc64 = result.and_then(|result| result.checksum_crc64_nvme());
        Ok(Part {
            number,
            etag: ETag::new(result.and_then(|result| result.e_tag()).unwrap_or_default()),
            crc64: crc64.map(str::to_owned),
        })
    }

    async fn complete(
        &self,
        upload: &Upload,
        parts: &[Part],
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let asked = self.asked("CompleteMultipartUpload", &upload.key);
        let (if_match, if_none_match) = headers(when);
        let attempts = Attempts::default();
        let list = parts.iter().map(|part| {
            CompletedPart::builder()
                .part_number(part.number as i32)
                .e_tag(part.etag.as_str())
                .set_checksum_crc64_nvme(part.crc64.clone())
                .build()
        });
        let parts = CompletedMultipartUpload::builder()
            .set_parts(Some(list.collect()))
            .build();
        let answer = self
            .client
            .complete_multipart_upload()
            .bucket(&self.name)
            .key(&upload.key)
            .upload_id(&upload.id)
            .multipart_upload(parts)
            .set_if_match(if_match)
            .set_if_none_match(if_none_match)
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await
            .map_err(|error| attempts.said(asked.refused(&error)))?;
        Ok(ETag::new(answer.e_tag().unwrap_or_default()))
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        let asked = self.asked("AbortMultipartUpload", &upload.key);
        let sent = self
            .client
            .abort_multipart_upload()
            .bucket(&self.name)
            .key(&upload.key)
            .upload_id(&upload.id)
            .send()
            .await;
        match sent.map_err(|error| asked.refused(&error)) {
            Err(error) if error.failure == Failure::Missing => Ok(()),
            answer => answer.map(drop),
        }
    }

    async fn list_uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreError> {
        let asked = self.asked("ListMultipartUploads", prefix);
        let answer = self
            .client
            .list_multipart_uploads()
            .bucket(&self.name)
            .prefix(prefix)
            .encoding_type(EncodingType::Url)
            .send()
            .await
            .map_err(|error| asked.refused(&error))?;
        let is_encoded = answer.encoding_type() == Some(&EncodingType::Url);
        let uploads = answer.uploads().iter().filter_map(|one| {
            let key = one.key()?;
            Some(Upload {
                key: if is_encoded {
                    decode(key)
                } else {
                    key.to_owned()
                },
                id: one.upload_id()?.to_owned(),
            })
        });
        Ok(uploads.collect())
    }
}
