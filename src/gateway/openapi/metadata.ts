import { z } from 'zod'
import { type Operation, STORE_ERRORS } from '../http/operation.js'
import { askedReference } from '../http/schemas.js'
import { pointers } from '../metadata/metadata.js'
import { metadataRecordShape } from '../metadata/metadata-record.js'

export const METADATA_OPERATIONS: Operation[] = [
  {
    route: 'GET /metadata/{reference}',
    id: 'metadata',
    tag: 'content',
    summary: 'What is known of an output, or of an ordinal at a step',
    params: z.object({ reference: askedReference }),
    answer: { description: 'The record.', headers: ['Cache-Control', 'ETag'], json: metadataRecordShape },
    errors: {
      BAD_OUTPOINT: 'The path does not end with an outpoint.',
      BAD_SEQUENCE: 'The sequence is not a number.',
      NOT_FOUND: 'This store has no such output, or the ordinal no such step.',
      BLOCKED: 'The operator has blocked it.',
      ...STORE_ERRORS,
    },
  },
  {
    route: 'POST /metadata',
    id: 'metadataOfMany',
    tag: 'content',
    summary: 'What is known of many outputs',
    body: { description: 'At most 100 pointers, each with or without a sequence.', json: pointers },
    answer: {
      description:
        'The record of each pointer as it was written; null if this store has none, or the operator has blocked it.',
      headers: ['Cache-Control'],
      json: z.record(askedReference, metadataRecordShape.nullable()),
    },
    errors: {
      BAD_BODY: 'The body is not a list of strings.',
      BAD_OUTPOINT: 'One of the pointers, which the error quotes, is not an outpoint.',
      BAD_SEQUENCE: 'One of the sequences, which the error quotes, is not a number.',
      TOO_LARGE: 'There are more than 100 pointers, or more than 64 KiB.',
      ...STORE_ERRORS,
    },
  },
]
