import { z } from 'zod'
import { OUTPOINT_PATTERNS, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { AnswerError } from './errors.js'
import { validate } from './schemas.js'

/** The most outpoints that a caller may list; each is compared with every transaction on the way. */
const MAX_KNOWN = 16

/** Up to a gigabyte, in bytes. */
const MAX_BYTES = /^[1-9][0-9]{0,9}$/

const ASKED = OUTPOINT_PATTERNS.asked.source.slice(1, -1)

/** The query of proofs that continue where the caller's knowledge ends, and are read in parts. */
export const partQuery = z.object({
  known: z
    .string()
    .optional()
    .meta({ pattern: `^(${ASKED}(,${ASKED}){0,${MAX_KNOWN - 1}})?$` })
    .describe(
      `Outputs that the caller has verified, at most ${MAX_KNOWN}, with commas between. Those that are not on the way are ignored.`,
    ),
  maxBytes: z
    .string()
    .optional()
    .meta({ pattern: MAX_BYTES.source })
    .describe(
      'How many bytes of transactions are enough. If the proof is longer, it ends with the last step on the way that fits, or with the first: its subject says which. Ask for what follows with `known`.',
    ),
})

export const BAD_PART = `\`known\` is not a list of at most ${MAX_KNOWN} outpoints, or \`maxBytes\` not a positive number.`

/**
 * The outpoints that a request says its sender knows, and how much of what follows is enough.
 *
 * @throws AnswerError or PointerError, both `BAD_OUTPOINT`.
 */
export function partOf(query: unknown): { known: Outpoint[]; maxBytes: number | undefined } {
  const refused = (): Error =>
    new AnswerError(
      'BAD_OUTPOINT',
      `known must be at most ${MAX_KNOWN} outpoints with commas between, and maxBytes a positive number`,
    )
  const { known = '', maxBytes } = validate(partQuery, query, refused)
  if (maxBytes !== undefined && !MAX_BYTES.test(maxBytes)) throw refused()
  const texts = known === '' ? [] : known.split(',', MAX_KNOWN + 1)
  if (texts.length > MAX_KNOWN) throw refused()
  return { known: texts.map(parseOutpoint), maxBytes: maxBytes === undefined ? undefined : Number(maxBytes) }
}
