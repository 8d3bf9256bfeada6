import { z } from 'zod'
import { OUTPOINT_PATTERNS, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { txid } from '../http/schemas.js'

/** The messages between peers (GASP, as in `@bsv/gasp`), validated as they come in. */

export const GASP_VERSION = 1
/** The output of a mint that contains its name. */
export const NAME_OUTPUT = 2
/** The most outputs offered at once: as many as the engine's own sync asks for. */
export const MAX_OFFERED = 10_000

/** A position in the order in which a host offers outputs. Engines use the time in milliseconds. */
const score = z.int().nonnegative()

export const outputIndex = z.int().min(0).max(0xffffffff)

const GASP_OUTPOINT = new RegExp(OUTPOINT_PATTERNS.written.source.replace('_', '\\.'))
const gaspOutpoint = z
  .string()
  .regex(GASP_OUTPOINT)
  .describe('`<txid>.<vout>`')
  .transform((text): Outpoint => ({ txid: text.slice(0, 64), vout: Number(text.slice(65)) }))

export const syncRequest = z.object({
  version: z.literal(GASP_VERSION),
  /** The lowest score to return. */
  since: score,
  limit: z.int().positive().optional(),
})

export const nodeRequest = z.object({ graphID: gaspOutpoint, txid, outputIndex })

const offeredOutput = z.object({ txid, outputIndex, score })

export type OfferedOutput = z.output<typeof offeredOutput>

export const syncResponse = z.object({ UTXOList: z.array(offeredOutput) })
export const syncAnswer = z.strictObject({
  UTXOList: z.array(z.strictObject(offeredOutput.shape)),
  since: score,
})

/** Not validated here: a transaction may have too many characters for a regular expression. */
const hex = z.string()

export const gaspNode = z.object({
  graphID: z.string(),
  rawTx: hex,
  outputIndex,
  proof: hex.nullish(),
})
export const writtenHex = hex.meta({ pattern: '^([0-9a-f]{2})+$' })
export const nodeAnswer = z.strictObject({
  graphID: z.string().regex(GASP_OUTPOINT),
  outputIndex,
  rawTx: writtenHex,
  proof: writtenHex.optional(),
  txMetadata: writtenHex,
})

/** The answer of an overlay engine's lookup service. The numbers are validated when read, as there may be millions. */
export const lookupResponse = z.object({
  outputs: z.array(z.object({ beef: z.custom<number[]>((value) => Array.isArray(value)) })),
})

export function formatGaspOutpoint({ txid, vout }: Outpoint): string {
  return `${txid}.${vout}`
}
