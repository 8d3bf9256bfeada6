import { z } from 'zod'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import type { Network } from '../../../backend/src/protocol/address.js'
import {
  formatOutpoint,
  OUTPOINT_PATTERNS,
  type Outpoint,
  parseOutpoint,
} from '../../../backend/src/protocol/outpoint.js'
import type {
  HistoryStep,
  ListedName,
  ListedOrdinal,
  ListedOutput,
  ListedTransaction,
  ListPlace,
  OrdinalHistory,
} from '../../../backend/src/read/listings.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { address, blockHeight, count, domain, name, outpoint, txid } from '../http/schemas.js'
import { ownerAddress } from '../names/name-record.js'

/** Entries of lists as JSON. Missing fields are unknown or empty. */

const time = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/)
  .describe('The time in the block header. Absent unless this host keeps block headers.')
const mined = { height: blockHeight.optional(), time: time.optional() }
const content = {
  contentType: z.string().describe('The content type, as inscribed.'),
  contentLength: count.describe('The length in bytes.'),
  sha256: txid.describe('The SHA-256 of the content.'),
}

export const countsShape = z.strictObject({
  names: count.describe('Genuine names.'),
  inscriptions: count.describe('Outputs with content, except names and the continuation chunks of streams.'),
  transactions: count.describe('Transactions in the log.'),
})

export const listedNameShape = z.strictObject({ name, outpoint, ...mined })

export const listedOutputShape = z.strictObject({
  outpoint,
  ...content,
  satoshis: count,
  owner: address.optional(),
  parent: outpoint.optional(),
  ...mined,
})

export const listedNodeShape = z.strictObject({
  domain,
  outpoint: outpoint.optional().describe('The live node, from which longer names are mined.'),
  children: count.describe('The number of characters claimed from it.'),
})

export const historyStepShape = z
  .strictObject({
    sequence: count,
    outpoint,
    owner: address.optional(),
    ...z.object(content).partial().shape,
    parent: outpoint.optional(),
    hasMap: z.boolean().describe('Whether this step has its own MAP.'),
    blocked: z.literal(true).optional().describe('The operator has blocked the inscription of this step.'),
    ...mined,
  })
  .meta({ dependentRequired: { contentType: ['contentLength', 'sha256'] } })

export const listedOrdinalShape = z
  .strictObject({
    outpoint: outpoint.describe('The current outpoint of the ordinal.'),
    origin: outpoint.optional(),
    sequence: count.optional(),
    contentOutpoint: outpoint.optional(),
    ...z.object(content).partial().shape,
    owner: address.optional(),
    ...mined,
  })
  .meta({ dependentRequired: { origin: ['sequence'], contentType: ['contentLength', 'sha256'] } })

export const transactionShape = z.strictObject({
  txid,
  active: z
    .boolean()
    .describe('Whether it is valid here. A transaction that lost a conflict has no outputs.'),
  outputs: z.array(
    z.strictObject({
      outpoint,
      satoshis: count.optional(),
      ...z.object(content).partial().shape,
      owner: address.optional(),
      parent: outpoint.optional(),
      name: name.optional().describe('The name mined in this output.'),
      domain: domain.optional().describe('The domain, if this output is a node.'),
      spender: txid.optional().describe('The transaction that spends it.'),
      blocked: z.literal(true).optional().describe('The operator has blocked this output.'),
    }),
  ),
  ...mined,
})

/** Records of rows, with the time of the block of each, if this host has its header. */
export function timed<Row, Record extends { height?: number }>(
  { store, network }: Pick<GatewayParts, 'store' | 'network'>,
  rows: readonly Row[],
  recordOf: (row: Row, network: Network) => Record,
): (Record & { time?: string })[] {
  const records = rows.map((row) => recordOf(row, network))
  const times = store.listings.blockTimes(records.flatMap(({ height }) => height ?? []))
  return records.map((record) => {
    const seconds = record.height === undefined ? undefined : times.get(record.height)
    return seconds === undefined ? record : { ...record, time: new Date(seconds * 1000).toISOString() }
  })
}

export function nameJson({ name, outpoint, height }: ListedName): z.output<typeof listedNameShape> {
  return { name, outpoint: formatOutpoint(outpoint), ...(height !== undefined && { height }) }
}

export function outputJson(output: ListedOutput, network: Network): z.output<typeof listedOutputShape> {
  const { content, satoshis } = output
  return { ...entryJson(output, network), ...contentJson(content), satoshis }
}

export function ordinalJson(ordinal: ListedOrdinal, network: Network): z.output<typeof listedOrdinalShape> {
  const { origin, sequence, contentOutpoint } = ordinal
  return {
    ...entryJson(ordinal, network),
    ...(origin && { origin: formatOutpoint(origin) }),
    ...(sequence !== undefined && { sequence }),
    ...(contentOutpoint && { contentOutpoint: formatOutpoint(contentOutpoint) }),
  }
}

export function stepJson(step: HistoryStep, network: Network): z.output<typeof historyStepShape> {
  const { sequence, mapLength, blocked } = step
  return {
    ...{ sequence, ...entryJson(step, network), hasMap: mapLength !== undefined },
    ...(blocked && { blocked }),
  }
}

export function transactionJson(
  { txid, height, isActive, outputs }: ListedTransaction,
  network: Network,
): z.output<typeof transactionShape> {
  return {
    txid,
    active: isActive,
    outputs: outputs.map(({ vout, output, name, domain, spender, blocked }) => ({
      ...entryJson({ ...output, outpoint: { txid, vout } }, network),
      ...(output && { satoshis: output.satoshis }),
      ...(name !== undefined && { name }),
      ...(domain !== undefined && { domain }),
      ...(spender !== undefined && { spender }),
      ...(blocked && { blocked }),
    })),
    ...(height !== undefined && { height }),
  }
}

function contentJson({ contentType, length, sha256 }: ContentSummary) {
  return { contentType, contentLength: length, sha256 }
}

interface Entry {
  outpoint: Outpoint
  content?: ContentSummary | undefined
  owner?: string | undefined
  parent?: Outpoint | undefined
  height?: number | undefined
}

function entryJson({ outpoint, content, owner, parent, height }: Entry, network: Network) {
  return {
    outpoint: formatOutpoint(outpoint),
    ...(content && contentJson(content)),
    ...(owner !== undefined && { owner: ownerAddress(owner, network) }),
    ...(parent && { parent: formatOutpoint(parent) }),
    ...(height !== undefined && { height }),
  }
}

/** A position in a newest-first list, as text: the `next` of a page. */
export const listPlace = z
  .string()
  .regex(new RegExp(`^\\d{1,16}-${OUTPOINT_PATTERNS.written.source.slice(1)}`))
  .meta({
    id: 'ListPlace',
    description: 'A position in a list, newest first: the `next` of a page.',
  })

export function formatPlace({ recency, outpoint }: ListPlace): string {
  return `${recency}-${formatOutpoint(outpoint)}`
}

/** @param text In the form of {@link listPlace}. */
export function parsePlace(text: string): ListPlace {
  const at = text.indexOf('-')
  return { recency: Number(text.slice(0, at)), outpoint: parseOutpoint(text.slice(at + 1)) }
}

/** The first sequence of the next page; undefined if there is none. */
export function nextSequence(
  { last, steps }: OrdinalHistory,
  order: 'oldest' | 'newest',
): number | undefined {
  const shown = steps.at(-1)?.sequence
  if (shown === undefined) return undefined
  if (order === 'oldest') return shown < last ? shown + 1 : undefined
  return shown > 0 ? shown - 1 : undefined
}
