import {
  blockedAnswer,
  errorAnswer,
  inPath,
  internal,
  type Paths,
  parameters,
  proofAnswers,
} from './operation.js'

/** Where ordinals come from, below a prefix of the gateway. */
export const PROVENANCE_PATHS: Paths = {
  [`/provenance/${inPath('Outpoint')}`]: {
    get: {
      operationId: 'provenance',
      tags: ['content'],
      summary: 'Proof of where an ordinal comes from and where it is now',
      description:
        'The tip, every hop to the origin, and for each hop the transactions whose values place the ordinal, each with its merkle path where the store has one.',
      parameters: parameters('Outpoint', 'If-Match', 'If-None-Match'),
      responses: {
        ...proofAnswers(),
        '400': errorAnswer({ codes: ['BAD_OUTPOINT'], description: 'No outpoint.' }),
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'No ordinal there in this store, or not all of the way to its origin.',
        }),
        '451': blockedAnswer('The operator has blocked the output asked for, or what the ordinal shows now.'),
        default: internal(),
      },
    },
  },
}
