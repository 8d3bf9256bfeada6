import { MAX_NAME_LENGTH } from '../../../backend/src/protocol/mine-node.js'
import { COVENANT_VERSIONS } from '../../../backend/src/protocol/mint.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { answer, type Paths, type Schema } from '../../gateway/openapi/operation.js'

const DEPLOYMENT: Schema = {
  type: 'object',
  required: ['profile', 'network'],
  additionalProperties: false,
  properties: {
    profile: { enum: Object.keys(PROFILES) },
    network: { enum: ['main', 'test'], description: 'Whose addresses owners have.' },
    genesis: {
      type: 'string',
      pattern: '^[0-9a-f]{64}_(0|[1-9][0-9]{0,9})$',
      description:
        'The outpoint of the root as deployed. Absent, with all below, where the host follows no tree.',
    },
    covenantVersion: {
      enum: [...COVENANT_VERSIONS],
      description:
        'Which rules its covenant has: see docs/covenant.md. Absent in answers of older servers: 1.',
    },
    difficulty: { type: 'integer', minimum: 1, maximum: 64, description: 'Zero bits of a solution.' },
    nameContentType: { type: 'string', minLength: 1 },
    marker: { type: 'string', minLength: 1, description: 'The protocol marker of name outputs.' },
    maxNameLength: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_NAME_LENGTH,
      description: 'How many characters a name can have: longer ones the covenant of this tree cannot write.',
    },
    tld: { type: 'string', minLength: 1, description: 'What stands after every name, behind a dot.' },
  },
}

export const DEPLOYMENT_PATHS: Paths = {
  '/deployment.json': {
    get: {
      operationId: 'deployment',
      tags: ['names'],
      summary: 'Which tree of names this host follows, and how names are mined in it',
      responses: {
        '200': answer({
          description: 'The tree, on the word of this host.',
          headers: ['Cache-Control'],
          content: { 'application/json': DEPLOYMENT },
        }),
      },
    },
  },
}
