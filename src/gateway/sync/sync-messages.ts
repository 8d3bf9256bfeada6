import { z } from 'zod'
import { OUTPOINT_PATTERNS, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { txid } from '../http/schemas.js'

/** The messages between peers (GASP, as in `@bsv/gasp`), validated where they arrive. */

export const GASP_VERSION = 1
/** The output of a mint that is its name. */
export const NAME_OUTPUT = 2
/** The most outputs that are offered at once: what the engine's own sync asks for. */
export const MAX_OFFERED = 10_000

/** A place in the order of a host: higher for what it offered later. Engines take the time in milliseconds for it. */
const score = z.int().nonnegative()

export const outputIndex = z.int().min(0).max(0xffffffff)

/** An outpoint as GASP writes it: with a dot. */
const GASP_OUTPOINT = new RegExp(OUTPOINT_PATTERNS.written.source.replace('_', '\\.'))
const gaspOutpoint = z
  .string()
  .regex(GASP_OUTPOINT)
  .describe('`<txid>.<vout>`')
  .transform((text): Outpoint => ({ txid: text.slice(0, 64), vout: Number(text.slice(65)) }))

export const syncRequest = z.object({
  version: z.literal(GASP_VERSION),
  /** The score from which on outputs are asked for. */
  since: score,
  limit: z.int().positive().optional(),
})

export const nodeRequest = z.object({ graphID: gaspOutpoint, txid, outputIndex })

const offeredOutput = z.object({ txid, outputIndex, score })

export type OfferedOutput = z.output<typeof offeredOutput>

export const syncResponse = z.object({ UTXOList: z.array(offeredOutput) })
/** What this host answers of that: nothing more. */
export const syncAnswer = z.strictObject({
  UTXOList: z.array(z.strictObject(offeredOutput.shape)),
  since: score,
})

/** Not held to its form here: a transaction may have more characters than a regular expression bears. */
const hex = z.string()

export const gaspNode = z.object({
  graphID: z.string(),
  rawTx: hex,
  outputIndex,
  proof: hex.nullish(),
})
/** What this host answers of that. */
const writtenHex = hex.meta({ pattern: '^([0-9a-f]{2})+$' })
export const nodeAnswer = z.strictObject({
  graphID: z.string().regex(GASP_OUTPOINT),
  outputIndex,
  rawTx: writtenHex,
  proof: writtenHex.optional(),
  txMetadata: writtenHex,
})

/** What a lookup service of an overlay engine answers. The numbers are checked as they are read: there may be millions. */
export const lookupResponse = z.object({
  outputs: z.array(z.object({ beef: z.custom<number[]>((value) => Array.isArray(value)) })),
})

export function formatGaspOutpoint({ txid, vout }: Outpoint): string {
  return `${txid}.${vout}`
}
