import { z } from 'zod'
import { type Operation, PROOF_ANSWER, STORE_ERRORS } from '../http/operation.js'
import { askedOutpoint } from '../http/schemas.js'

export const PROVENANCE_OPERATIONS: Operation[] = [
  {
    route: 'GET /provenance/{outpoint}',
    id: 'provenance',
    tag: 'content',
    summary: 'Proof of where an ordinal comes from and where it is now',
    description:
      'The tip, every hop to the origin, and for each hop the transactions whose values place the ordinal, each with its merkle path if the store has one.',
    params: z.object({ outpoint: askedOutpoint }),
    answer: PROOF_ANSWER,
    errors: {
      BAD_OUTPOINT: 'The path does not end with an outpoint.',
      NOT_FOUND: 'This store has no ordinal there, or not every transaction back to its origin.',
      BLOCKED: 'The operator has blocked the output, or what the ordinal shows now.',
      ...STORE_ERRORS,
    },
  },
]
