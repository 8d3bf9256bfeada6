import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { readStrictUtf8, toHex } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { field, readJson } from '../../client/bounded-fetch.js'
import {
  MAX_PROOF_BYTES,
  parseSourced,
  parseSourcedProof,
  type SingleSource,
  sightingsOneByOne,
  type TransactionOptions,
  withProof,
} from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/** The most bytes read of a spend: a valid one has 32. */
const MAX_SPEND_BYTES = 1024

/** How much of a transaction is read to see that it exists. */
const MAX_SIGHTED_BYTES = 64 * 1024
const MAX_HEADER_BYTES = 4096
/** The longest page of a subscription to read, in bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** A position in a subscription: after a transaction. */
export interface FeedPosition {
  height: number
  /** The index of the transaction in its block; -1 comes before all of them. */
  index: number
}

/** A transaction as a subscription describes it. Nothing is checked. */
export interface FeedEntry extends FeedPosition {
  txid: string
  /** The hash of its block. */
  block: string
  /** Its bytes; empty if they have to be fetched. */
  raw: Uint8Array
  /** Its claimed merkle path; empty if it has to be fetched. */
  merklePath: Uint8Array
}

/**
 * JungleBus of GorillaPool, over HTTP:
 *
 * - `GET /v1/transaction/get/<txid>/bin`: the raw transaction; 404 if it is unknown.
 * - `GET /v1/transaction/proof/<txid>/bin`: its merkle path (BUMP, BRC-74); 404 if it is unmined.
 * - `GET /v1/txo/spend/<txid>_<vout>`: the 32 bytes of the spender's txid, in display order; empty if it is unspent.
 * - `GET /v1/block_header/tip`: the header of the last block, as JSON.
 * - `GET /v1/transaction/from_block/<subscription>?height=&last_idx=`: a page of the transactions that a subscription chooses,
 *   as JSON, in the order of the chain; below `from_block/lite` without their bytes.
 *
 * These routes are undocumented, and taken from its public clients (b-open-io/1sat-sdk, `packages/cli`; b-open-io/1sat-stack
 * and b-open-io/go-junglebus; the crawler of shruggr/opns-overlay). A 404 for a spend does not mean that the output is
 * unspent.
 */
export class JungleBusSource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = true
  readonly knowsNodes = true

  constructor(options: SourceClientOptions) {
    this.client = new SourceClient(options)
  }

  async transaction(
    txid: string,
    { maxBytes, isUrgent }: TransactionOptions,
  ): Promise<TransactionRecord | undefined> {
    const proving = this.proof(txid, { isUrgent })
    const asking = this.client.ask(`/v1/transaction/get/${txid}/bin`, {
      ...{ maxBytes, isUrgent },
      tooLarge: 'TOO_LARGE',
      read: (raw) => parseSourced(txid, raw),
    })
    return await withProof(asking, proving)
  }

  /** JungleBus also has mempool transactions, and none that nodes have refused. */
  async sightings(txids: readonly string[]): Promise<Map<string, Sighting>> {
    return await sightingsOneByOne(txids, async (txid) => {
      try {
        return await this.client.ask(`/v1/transaction/get/${txid}/bin`, {
          maxBytes: MAX_SIGHTED_BYTES,
          tooLarge: 'TOO_LARGE',
          read: (raw): Sighting | undefined => parseSourced(txid, raw) && 'seen',
        })
      } catch (error) {
        // A longer transaction exists as well.
        if (error instanceof ChainSourceError && error.code === 'TOO_LARGE') return 'seen'
        throw error
      }
    })
  }

  async proof(
    txid: string,
    { isUrgent }: { isUrgent?: boolean | undefined } = {},
  ): Promise<Proof | undefined> {
    return await this.client.ask(`/v1/transaction/proof/${txid}/bin`, {
      ...{ maxBytes: MAX_PROOF_BYTES, isUrgent },
      read: (bump) => parseSourcedProof(txid, bump),
    })
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    const shown = formatOutpoint(outpoint)
    const { name } = this.client
    const answer = await this.client.ask(`/v1/txo/spend/${shown}`, {
      maxBytes: MAX_SPEND_BYTES,
      read: (bytes) => {
        if (bytes.length !== 0 && bytes.length !== 32)
          throw new ChainSourceError('BAD_ANSWER', `${name} returned no txid for the spend of ${shown}`)
        return { spender: bytes.length === 0 ? undefined : toHex(bytes) }
      },
    })
    if (answer === undefined) throw new ChainSourceError('NOT_KNOWN', `${name} does not know ${shown}`)
    return answer.spender
  }

  /**
   * The height of the chain, as far as JungleBus knows.
   *
   * @throws ChainSourceError
   */
  async height(): Promise<number> {
    const { name } = this.client
    const height = await this.client.ask('/v1/block_header/tip', {
      maxBytes: MAX_HEADER_BYTES,
      read: (body) => field(readJson(body), 'height'),
    })
    if (isCount(height)) return height
    throw new ChainSourceError('BAD_ANSWER', `${name} returned no block header for the tip`)
  }

  /**
   * The next transactions that a subscription chooses, in the order of the chain: those of the block at a height, or of that
   * and later ones.
   *
   * @throws ChainSourceError `BAD_ANSWER` if there is no such subscription.
   */
  async transactionsAfter(position: FeedPosition, subscription: string): Promise<FeedEntry[]> {
    try {
      return await this.page(position, { subscription, isLite: false })
    } catch (error) {
      if (!(error instanceof ChainSourceError && error.code === 'TOO_LARGE')) throw error
      return await this.page(position, { subscription, isLite: true })
    }
  }

  private async page(
    { height, index }: FeedPosition,
    { subscription, isLite }: { subscription: string; isLite: boolean },
  ): Promise<FeedEntry[]> {
    const { name } = this.client
    const route = `/v1/transaction/from_block/${isLite ? 'lite/' : ''}${subscription}`
    // The coinbase has index 0, and no subscription chooses it.
    const entries = await this.client.ask(`${route}?height=${height}&last_idx=${Math.max(0, index)}`, {
      maxBytes: MAX_PAGE_BYTES,
      ...(!isLite && { tooLarge: 'TOO_LARGE' as const }),
      read: (body) => {
        // Go encodes an empty list as null.
        const list = readJson(body) ?? (readStrictUtf8(body)?.trim() === 'null' ? [] : undefined)
        if (Array.isArray(list)) return list.flatMap(readEntry)
        throw new ChainSourceError('BAD_ANSWER', `${name} returned no list for subscription ${subscription}`)
      },
    })
    if (entries !== undefined) return entries
    throw new ChainSourceError('BAD_ANSWER', `${name} does not know the subscription ${subscription}`)
  }
}

/** An entry of a page; none if it is malformed. */
function readEntry(value: unknown): FeedEntry[] {
  const txid = field(value, 'id')
  const height = field(value, 'block_height')
  const index = field(value, 'block_index')
  if (typeof txid !== 'string' || !/^[0-9a-f]{64}$/.test(txid)) return []
  if (!isCount(height) || !isCount(index)) return []
  const raw = base64(field(value, 'transaction'))
  const merklePath = base64(field(value, 'merkle_proof'))
  return [{ txid, block: String(field(value, 'block_hash')).slice(0, 64), height, index, raw, merklePath }]
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Decodes bytes as Go writes them in JSON. */
function base64(value: unknown): Uint8Array {
  return Buffer.from(typeof value === 'string' ? value : '', 'base64')
}
