import { z } from 'zod'
import { OUTPOINT_PATTERNS, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError } from './errors.js'
import { validate } from './schemas.js'

/** The most outpoints that a caller may list; each is compared with every transaction on the way. */
const MAX_KNOWN = 16

const ASKED = OUTPOINT_PATTERNS.asked.source.slice(1, -1)

/** The query of proofs that continue where the caller's knowledge ends. */
export const knownQuery = z.object({
  known: z
    .string()
    .optional()
    .meta({ pattern: `^(${ASKED}(,${ASKED}){0,${MAX_KNOWN - 1}})?$` })
    .describe(
      `Outputs that the caller has verified, at most ${MAX_KNOWN}, with commas between. Those that are not on the way are ignored.`,
    ),
})

export const BAD_KNOWN = `\`known\` is not a list of at most ${MAX_KNOWN} outpoints.`

/**
 * The outpoints that a request says its sender knows.
 *
 * @throws BadRequestError or PointerError, both `BAD_OUTPOINT`.
 */
export function knownOutpoints(query: unknown): Outpoint[] {
  const refused = (): Error =>
    new BadRequestError('BAD_OUTPOINT', `known must be at most ${MAX_KNOWN} outpoints with commas between`)
  const { known = '' } = validate(knownQuery, query, refused)
  if (known === '') return []
  const texts = known.split(',', MAX_KNOWN + 1)
  if (texts.length > MAX_KNOWN) throw refused()
  return texts.map(parseOutpoint)
}
