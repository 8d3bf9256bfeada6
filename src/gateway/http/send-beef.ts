import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  type ListedBeef,
  type ListedTransaction,
  listedBeef,
  outpointBeef,
} from '../../../backend/src/graph/write-beef.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { OUTPOINT_PATTERNS, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Transactions } from '../../../backend/src/read/transactions.js'
import { CACHE, type Exchange, entityTag } from './caching.js'
import { AnswerError } from './errors.js'
import { validate } from './schemas.js'
import { bytesRepresentation, sendChunks, sendHead } from './send-body.js'

export interface BeefAnswer {
  body: Pick<ListedBeef, 'length' | 'held' | 'bytes'>
  tag: string
}

/** Prepares the BEEF of stored transactions, listed parents first; with a subject, an Outpoint BEEF (BRC-158). */
export async function beefAnswer(options: {
  subject?: Outpoint
  transactions: ListedTransaction[]
  store: Transactions
}): Promise<BeefAnswer> {
  const { subject, ...listed } = options
  const body = subject === undefined ? await listedBeef(listed) : await outpointBeef({ subject, ...listed })
  return { body, tag: await tagOf(body, options.transactions) }
}

/** Sends a BEEF. @param options.cache Its `Cache-Control`; by default, clients have to revalidate it. */
export async function sendBeef(exchange: Exchange & { answer: BeefAnswer; cache?: string }): Promise<void> {
  const { request, response, answer, cache = CACHE.revalidate } = exchange
  const { body, tag } = answer
  const { length, held } = body
  const representation = bytesRepresentation({ cache, length, tag })
  if (sendHead({ request, response, representation }) === undefined) return
  await sendChunks(response, { chunks: body.bytes(), length, held })
}

const HASHED_PER_SLICE = 2000

/** Hashes what determines the body: its head, and the txids of its transactions. */
async function tagOf({ head }: ListedBeef, transactions: { txid: string }[]): Promise<string> {
  const hash = createHash('sha256')
  let hashed = 0
  for (const part of [...head, ...transactions.map(({ txid }) => txid)]) {
    hash.update(part)
    if (++hashed % HASHED_PER_SLICE === 0) await yieldToEventLoop()
  }
  return entityTag(hash.digest('hex'), UNTYPED)
}

/** The error instead of a partial proof, which would prove nothing. */
export function incompleteProof({ txid }: { txid: string }): AnswerError {
  return new AnswerError('NOT_FOUND', `the proof is incomplete: this store cannot continue it from ${txid}`)
}

/** The most outpoints that a caller may list; each is compared with every transaction on the way. */
const MAX_KNOWN = 16

/** A number of bytes, up to ten digits. */
const MAX_BYTES = /^[1-9][0-9]{0,9}$/

const ASKED = OUTPOINT_PATTERNS.asked.source.slice(1, -1)

/** The query of proofs that start where the caller's knowledge ends, and can be read in parts. */
export const partQuery = z.object({
  known: z
    .string()
    .optional()
    .meta({ pattern: `^(${ASKED}(,${ASKED}){0,${MAX_KNOWN - 1}})?$` })
    .describe(
      `Outputs that the caller has already verified, comma-separated, at most ${MAX_KNOWN}. Those that are not part of this proof are ignored.`,
    ),
  maxBytes: z
    .string()
    .optional()
    .meta({ pattern: MAX_BYTES.source })
    .describe(
      'The most bytes of transactions to return. A longer proof ends with the last step that fits, or with the first one; its subject says which. Continue with `known`.',
    ),
})

export const BAD_PART = `\`known\` is not a list of at most ${MAX_KNOWN} outpoints, or \`maxBytes\` not a positive number.`

/**
 * The outpoints that the sender of a request already knows, and how many bytes of the rest it wants.
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
