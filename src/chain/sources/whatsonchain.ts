import { setTimeout } from 'node:timers/promises'
import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { fromHex, readStrictUtf8 } from '../../../backend/src/protocol/bytes.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { field, readJson } from '../../client/bounded-fetch.js'
import {
  MAX_PROOF_BYTES,
  parseSourced,
  parseSourcedProof,
  parseSourcedTxid,
  type SingleSource,
  type TransactionOptions,
  withProof,
} from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { whatsOnChainUrl } from './source-address.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/** A spend is a short JSON object. */
const MAX_SPEND_BYTES = 4096
/** A status has some 250 bytes. */
const MAX_STATUS_BYTES = 1024
/** How many outputs fit in one question, and how many milliseconds a question waits for more. */
const BATCH = 20
const GATHERING = 20
/** How long outputs are asked about one by one if the service does not accept batches, in milliseconds. */
const ALONE = 600_000

/** What an index means when it names no spender: it knows nothing if it does not have the output. */
type Unspent = 'unspent' | 'unknown'

/**
 * WhatsOnChain, below `/v1/bsv/main` (https://docs.taal.com/core-products/whatsonchain):
 *
 * - `/tx/<txid>/hex`: the raw transaction in hex, mined or not; 404 if it is unknown.
 * - `/tx/<txid>/proof/bump`: its merkle path (BUMP, BRC-74) in hex; 404 if it is unmined.
 * - `/tx/<txid>/<vout>/confirmed/spent`, `…/unconfirmed/spent`: `{txid, vin, status}` of the spender in a block, or in the
 *   mempool. They are two indexes. In each, 404 says that the output has no spender there, and 400 that the index does not know the
 *   output: the index of blocks does not know outputs of unmined transactions.
 * - `POST /utxos/spent` with `{utxos: [{txid, vout}]}`, at most 20: `[{utxo, spentIn: {txid, vin, status}, error}]`, from both
 *   indexes; without `spentIn` the output is unspent. Outputs with any other answer are asked about one by one.
 * - `POST /txs/status` with `{txids}`, at most 20: `[{txid, blockhash, blockheight, blocktime, confirmations, error}]`; just the
 *   txid for one in the mempool, and `error: "unknown"` for an unknown one.
 */
export class WhatsOnChainSource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = true
  readonly knowsNodes = true
  /** Outputs that will be asked about together. */
  private gathering: { outpoints: Outpoint[]; spends: Promise<Spends> } | undefined
  /** Until when outputs are asked about one by one, by `monotonic()`. */
  private aloneUntil = 0

  /** @param options.url The origin, for the live chain, or a URL that ends with `/v1/bsv/<network>`. */
  constructor(options: SourceClientOptions) {
    const url = whatsOnChainUrl(options.url.replace(/\/+$/, ''), 'main')
    this.client = new SourceClient({ ...options, url })
  }

  async transaction(
    txid: string,
    { maxBytes, isUrgent }: TransactionOptions,
  ): Promise<TransactionRecord | undefined> {
    const proving = this.proof(txid, { isUrgent })
    const asking = this.client.ask(`/tx/${txid}/hex`, {
      ...{ maxBytes: 2 * maxBytes + QUOTES, isUrgent },
      tooLarge: 'TOO_LARGE',
      read: (body) => parseSourced(txid, this.bytesOf(body, { of: txid })),
    })
    return await withProof(asking, proving)
  }

  async proof(
    txid: string,
    { isUrgent }: { isUrgent?: boolean | undefined } = {},
  ): Promise<Proof | undefined> {
    return await this.client.ask(`/tx/${txid}/proof/bump`, {
      ...{ maxBytes: 2 * MAX_PROOF_BYTES + QUOTES, isUrgent },
      read: (body) => {
        const bump = this.bytesOf(body, { of: `the proof of ${txid}` })
        return bump.length === 0 ? undefined : parseSourcedProof(txid, bump)
      },
    })
  }

  async sightings(txids: readonly string[]): Promise<Map<string, Sighting>> {
    const sightings = new Map<string, Sighting>()
    for (let at = 0; at < txids.length; at += BATCH) {
      const batch = txids.slice(at, at + BATCH)
      const known = await this.client.ask('/txs/status', {
        json: { txids: batch },
        maxBytes: MAX_STATUS_BYTES * batch.length,
        read: (body) => {
          const answers = readJson(body)
          if (Array.isArray(answers)) return answers.filter((each) => field(each, 'error') === undefined)
          throw new ChainSourceError('BAD_ANSWER', `${this.client.name} returned no list of statuses`)
        },
      })
      const found = new Set(known?.map((each) => field(each, 'txid')))
      for (const txid of batch) if (found.has(txid)) sightings.set(txid, 'seen')
    }
    return sightings
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    const spends = this.aloneUntil > monotonic() ? new Map() : await this.gathered(outpoint)
    const shown = formatOutpoint(outpoint)
    return spends.has(shown) ? spends.get(shown) : await this.spenderOfOne(outpoint)
  }

  /** The spenders of an output and of those that are asked about at the same time. */
  private async gathered(outpoint: Outpoint): Promise<Spends> {
    if (this.gathering === undefined) {
      const outpoints: Outpoint[] = []
      const spends = setTimeout(GATHERING).then(async () => {
        if (this.gathering?.outpoints === outpoints) this.gathering = undefined
        return await this.spends(outpoints)
      })
      this.gathering = { outpoints, spends }
    }
    const { outpoints, spends } = this.gathering
    outpoints.push(outpoint)
    if (outpoints.length === BATCH) this.gathering = undefined
    return await spends
  }

  private async spends(outpoints: Outpoint[]): Promise<Spends> {
    const spends = await this.client.ask('/utxos/spent', {
      maxBytes: BATCH * MAX_SPEND_BYTES,
      json: { utxos: outpoints.map(({ txid, vout }) => ({ txid, vout })) },
      read: readSpends,
      statuses: { 400: new Map(), 405: undefined },
    })
    if (spends === undefined) this.aloneUntil = monotonic() + ALONE
    return spends ?? new Map()
  }

  private async spenderOfOne(outpoint: Outpoint): Promise<string | undefined> {
    // Two requests if it is unspent. If it is mined between them, the next question finds that.
    const mined = await this.spend(outpoint, 'confirmed')
    if (mined.spender !== undefined) return mined.spender
    const unmined = await this.spend(outpoint, 'unconfirmed')
    if (unmined.spender !== undefined) return unmined.spender
    if (mined.unspent === 'unknown' && unmined.unspent === 'unknown')
      throw new ChainSourceError('NOT_KNOWN', `${this.client.name} does not know ${formatOutpoint(outpoint)}`)
    return undefined
  }

  private async spend(
    outpoint: Outpoint,
    index: 'confirmed' | 'unconfirmed',
  ): Promise<{ spender?: string; unspent?: Unspent }> {
    const { txid, vout } = outpoint
    const { name } = this.client
    const answer = await this.client.ask<{ spender?: string; unspent?: Unspent }>(
      `/tx/${txid}/${vout}/${index}/spent`,
      {
        maxBytes: MAX_SPEND_BYTES,
        read: (body) => ({
          spender: parseSourcedTxid(field(readJson(body), 'txid'), {
            name,
            of: `the spend of ${formatOutpoint(outpoint)}`,
          }),
        }),
        statuses: { 404: { unspent: 'unspent' }, 400: { unspent: 'unknown' } },
      },
    )
    return answer ?? {}
  }

  /** Bytes in hex, as text or as a JSON string. */
  private bytesOf(body: Uint8Array, { of }: { of: string }): Uint8Array {
    const text = (readStrictUtf8(body) ?? '?').trim().replace(/^"(.*)"$/s, '$1')
    if (text.length % 2 === 0 && /^[0-9a-f]*$/i.test(text)) return fromHex(text)
    throw new ChainSourceError('BAD_ANSWER', `${this.client.name} returned no hex for ${of}`)
  }
}

/** Spenders by outpoint; undefined: unspent. */
type Spends = ReadonlyMap<string, string | undefined>

/** The answers that say whether an output is spent. */
function readSpends(body: Uint8Array): Spends {
  const answers = readJson(body)
  const spends = new Map<string, string | undefined>()
  for (const answer of Array.isArray(answers) ? answers : []) {
    const [utxo, spentIn] = [field(answer, 'utxo'), field(answer, 'spentIn')]
    const spender = field(spentIn, 'txid')
    const isSpent = /^(un)?confirmed$/.test(String(field(spentIn, 'status'))) && isTxid(spender)
    if (field(answer, 'error') || (spentIn && !isSpent)) continue
    spends.set(`${field(utxo, 'txid')}_${field(utxo, 'vout')}`, isSpent ? spender.toLowerCase() : undefined)
  }
  return spends
}

function isTxid(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value)
}

/** How much longer a text is than its hex: quotes and a line break. */
const QUOTES = 4
