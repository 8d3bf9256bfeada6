import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { type OutputRecord, TIP } from '../../../backend/src/graph/records.js'
import type { Network } from '../../../backend/src/protocol/address.js'
import {
  decodeHeader,
  headerAt,
  headerCount,
  targetOf,
  timeOf,
} from '../../../backend/src/protocol/block-header.js'
import { reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import type { ContentOutput } from '../content/content-root.js'
import { address, blockHeight, count, txid } from '../http/schemas.js'
import { ownerAddress } from '../names/name-record.js'

/*
 * Records of ord's recursive endpoints (https://docs.ordinals.com/inscriptions/recursion.html), with its names and types. Fields
 * that ord always has but this host does not know are absent; fields that may be missing in ord, too, are null.
 */

export const inscriptionId = z
  .string()
  .regex(/^[0-9a-f]{64}i(0|[1-9][0-9]*)$/)
  .describe('`<txid>i<vout>`, the output that holds the inscription.')

const UNKNOWN = 'Absent if not known here.'
const place = {
  height: blockHeight.optional(),
  timestamp: count
    .optional()
    .describe('The time in the block header. Absent unless this host keeps block headers.'),
  output: z
    .string()
    .regex(/^[0-9a-f]{64}:[0-9]+$/)
    .optional()
    .describe(`The current outpoint of its ordinal, as \`<txid>:<vout>\`. ${UNKNOWN}`),
  satpoint: z
    .string()
    .regex(/^[0-9a-f]{64}:[0-9]+:0$/)
    .optional()
    .describe(`The first satoshi of that output. ${UNKNOWN}`),
}
const nothing = {
  charms: z.array(z.never()).max(0).describe('Always empty: this host has no charms.'),
  sat: z.null().describe('Always null: this host does not number satoshis.'),
}

export const relativeShape = z.strictObject({ id: inscriptionId, ...place, ...nothing })

export const inscriptionShape = relativeShape.extend({
  content_type: z.string().describe('The content type, as inscribed.'),
  content_length: count.describe('The length in bytes.'),
  delegate: z.null().describe('Always null: this host has no delegates.'),
  value: count.nullable().describe('The satoshis of that output.'),
  address: address.nullable(),
})

const hash = txid.describe('A hash in hex.')

export const blockInfoShape = z.strictObject({
  bits: count,
  confirmations: count.describe('The number of confirmations, including this block.'),
  difficulty: z.number(),
  hash,
  height: count,
  median_time: count
    .nullable()
    .describe('The median time of this block and the ten before it, as far as known.'),
  merkle_root: hash,
  next_block: hash.nullable(),
  nonce: count,
  previous_block: hash.nullable(),
  target: hash,
  timestamp: count,
  version: count,
})

export function formatId({ txid, vout }: Outpoint): z.output<typeof inscriptionId> {
  return `${txid}i${vout}`
}

/** @throws BlockedError, also if its ordinal now shows something blocked. */
export function inscriptionRecord(
  store: GraphReads,
  { outpoint, content }: ContentOutput,
  network: Network,
): z.output<typeof inscriptionShape> {
  const now = currentOf(store, outpoint)
  const record = relativeRecord(store, outpoint, now)
  return {
    ...record,
    ...withTimestamps(store, [record])[0],
    content_type: content.contentType,
    content_length: content.length,
    delegate: null,
    value: now?.satoshis ?? null,
    address: now?.owner === undefined ? null : ownerAddress(now.owner, network),
  }
}

/** Records of inscriptions for lists, without blocked ones. */
export function relativeRecords(store: GraphReads, outpoints: Outpoint[]): z.output<typeof relativeShape>[] {
  const records = outpoints.flatMap(
    (outpoint) => unlessBlocked(() => relativeRecord(store, outpoint, currentOf(store, outpoint))) ?? [],
  )
  return withTimestamps(store, records)
}

function relativeRecord(
  store: GraphReads,
  outpoint: Outpoint,
  now: OutputRecord | undefined,
): z.output<typeof relativeShape> {
  const height = store.transactions.heightOf(outpoint.txid)
  const output = now && `${now.outpoint.txid}:${now.outpoint.vout}`
  return {
    ...{ id: formatId(outpoint), charms: [], sat: null },
    ...(height !== undefined && { height }),
    ...(output && { output, satpoint: `${output}:0` }),
  }
}

/** The current output of an ordinal; undefined if it is unknown or the ordinal is lost. */
function currentOf(store: GraphReads, outpoint: Outpoint): OutputRecord | undefined {
  const last = store.ordinals.at(outpoint, TIP)?.output ?? store.ordinals.output(outpoint)
  return last && store.transactions.spenderOf(last.outpoint) === undefined ? last : undefined
}

function withTimestamps<Record extends { height?: number | undefined }>(
  store: GraphReads,
  records: Record[],
): (Record & { timestamp?: number })[] {
  const times = store.listings.blockTimes(records.flatMap(({ height }) => height ?? []))
  return records.map((record) => {
    const timestamp = record.height === undefined ? undefined : times.get(record.height)
    return timestamp === undefined ? record : { ...record, timestamp }
  })
}

/** The median of the times of this many blocks is the median time of the last, by consensus. */
export const MEDIAN_BLOCKS = 11

/**
 * The data in the header of a block.
 *
 * @param headers Consecutive headers: the block's at `index`, the next one if there is one, and the ones before it, up to
 * {@link MEDIAN_BLOCKS} including the block's.
 */
export function blockInfo(
  headers: Uint8Array,
  { index, height, tip }: { index: number; height: number; tip: number },
): z.output<typeof blockInfoShape> {
  const { version, previous, root, time, bits, nonce } = decodeHeader(headerAt(headers, index))
  const first = index + 1 - Math.min(MEDIAN_BLOCKS, height + 1)
  const times = Array.from({ length: index + 1 - first }, (_, at) => first + at)
  const sorted = first < 0 ? [] : times.map((at) => timeOf(headers, at)).sort((a, b) => a - b)
  const next = index + 1 < headerCount(headers) ? headerAt(headers, index + 1) : undefined
  return {
    bits,
    confirmations: tip - height + 1,
    // Computed like in nodes, to the last digit.
    difficulty: (0xffff / (bits & 0xffffff)) * 256 ** (29 - (bits >>> 24)),
    hash: hashOf(headerAt(headers, index)),
    height,
    median_time: sorted[sorted.length >> 1] ?? null,
    merkle_root: root,
    next_block: next === undefined ? null : hashOf(next),
    nonce,
    previous_block: height === 0 ? null : previous,
    target: (targetOf(bits) ?? 0n).toString(16).padStart(64, '0'),
    timestamp: time,
    version: version >>> 0,
  }
}

export function hashOf(header: Uint8Array): string {
  return toHex(reversed(nativeHash256(header)))
}
