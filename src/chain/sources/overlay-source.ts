import { LRUCache } from 'lru-cache'
import { type BeefContents, readBeef } from '../../../backend/src/graph/read-beef.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES } from '../../../backend/src/protocol/profile.js'
import { field, readJson } from '../../client/bounded-fetch.js'
import {
  MAX_PROOF_BYTES,
  parsed,
  parseSourced,
  parseSourcedProof,
  parseSourcedTxid,
  type SingleSource,
} from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/** The longest spend or list of capabilities: short JSON texts. */
const MAX_SHORT_BYTES = 4096
/** The longest answer of `/lookup`: a BEEF is an array of numbers there. */
const MAX_LOOKUP_BYTES = 4 * 1024 * 1024
/** BEEFs of spenders, kept because the caller will ask for them next: how many, and their bytes. */
const SEEN = { max: 64, maxSize: MAX_LOOKUP_BYTES }
/** The outputs where the ordinal of a transaction usually is: in a transfer, and in a mint. */
const USUAL_OUTPUTS = [0, 2]

/**
 * Another overlay host. A host of this kind is asked by its wallet routes (`docs/spec/http.md`):
 *
 * - `/svc/beef/<txid>/tx`: a transaction of which a topic holds an output; 404 for any other.
 * - `/svc/beef/<txid>/proof`: its merkle path (BUMP, BRC-74); 404 if the host has none.
 * - `/svc/txo/<outpoint>/spend`: `{spendTxid}`, null if the host knows no spender; 404 if no topic holds the output.
 *
 * A host without those routes, such as OverlayExpress with our topics, is asked by `/lookup` (BRC-24): `ls_ordinals` has the tip
 * of an ordinal with its transaction, but no spenders of nodes.
 *
 * Both know their topics and not the chain, so an output for which they know no spender may well be spent.
 */
export class OverlaySource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = false
  /** True if the host has wallet routes. */
  knowsNodes = false
  private isWallets: Promise<boolean> | undefined
  /** By txid. */
  private readonly seen = new LRUCache<string, BeefContents>({
    ...SEEN,
    sizeCalculation: ({ length }) => length + 1,
  })

  constructor(options: SourceClientOptions) {
    this.client = new SourceClient(options)
  }

  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    if (!(await this.hasWalletRoutes())) return await this.lookedUp(txid, { maxBytes })
    const record = await this.client.ask(`/svc/beef/${txid}/tx`, {
      maxBytes,
      tooLarge: 'TOO_LARGE',
      read: (raw) => parseSourced(txid, raw),
    })
    // A host holds outputs of few transactions: usually nothing is left to prove, so the proof is not fetched in parallel.
    const proof = record && (await this.proof(txid))
    return record && { ...record, ...(proof && { proof }) }
  }

  async proof(txid: string): Promise<Proof | undefined> {
    if (!(await this.hasWalletRoutes())) return (await this.lookedUp(txid, {}))?.proof
    return await this.client.ask(`/svc/beef/${txid}/proof`, {
      maxBytes: MAX_PROOF_BYTES,
      read: (bump) => parseSourcedProof(txid, bump),
    })
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    if (!(await this.hasWalletRoutes())) return await this.spenderBeforeTip(outpoint)
    const { name } = this.client
    const of = `the spend of ${formatOutpoint(outpoint)}`
    return await this.client.ask(`/svc/txo/${formatOutpoint(outpoint)}/spend`, {
      maxBytes: MAX_SHORT_BYTES,
      read: (body) => {
        const answer = readJson(body)
        if (typeof answer !== 'object' || answer === null)
          throw new ChainSourceError('BAD_ANSWER', `${name} returned no JSON object for ${of}`)
        const spender = field(answer, 'spendTxid')
        return spender === null ? undefined : parseSourcedTxid(spender, { name, of })
      },
    })
  }

  /** Asks the host, once. */
  private async hasWalletRoutes(): Promise<boolean> {
    this.isWallets ??= this.client
      .ask('/svc/capabilities', {
        maxBytes: MAX_SHORT_BYTES,
        read: (body) => {
          const groups = readJson(body)
          return Array.isArray(groups) && groups.includes('beef') && groups.includes('txo')
        },
      })
      .then((has) => {
        this.knowsNodes = has === true
        return this.knowsNodes
      })
    try {
      return await this.isWallets
    } catch (error) {
      this.isWallets = undefined
      throw error
    }
  }

  /** The spender of an ordinal's output, if it made the tip, or if the answer has the steps in between. */
  private async spenderBeforeTip({ txid, vout }: Outpoint): Promise<string | undefined> {
    const beef = await this.lookup({ outpoint: formatOutpoint({ txid, vout }), seq: -1 })
    const spender = beef?.txids.find((each) =>
      beef.transaction(each)?.inputs.some((input) => isSameOutpoint(input, { txid, vout })),
    )
    if (beef !== undefined && spender !== undefined) this.seen.set(spender, beef)
    return spender
  }

  private async lookedUp(
    txid: string,
    { maxBytes = Number.POSITIVE_INFINITY }: { maxBytes?: number },
  ): Promise<TransactionRecord | undefined> {
    let beef = this.seen.get(txid)
    for (const vout of USUAL_OUTPUTS) {
      if (beef?.transaction(txid) !== undefined) break
      beef = await this.lookup({ outpoint: formatOutpoint({ txid, vout }) })
    }
    const raw = beef?.transaction(txid)?.raw
    if (beef === undefined || raw === undefined) return undefined
    if (raw.length > maxBytes)
      throw new ChainSourceError('TOO_LARGE', `${txid} is longer than ${maxBytes} bytes`)
    const proof = this.parsed(() => beef.proof(txid))
    return { txid, raw, ...(proof && { proof }) }
  }

  /** The BEEF of the first output that a query finds. */
  private async lookup(query: object): Promise<BeefContents | undefined> {
    return await this.client.ask('/lookup', {
      json: { service: LOOKUP_SERVICES.ordinals, query },
      maxBytes: MAX_LOOKUP_BYTES,
      tooLarge: 'TOO_LARGE',
      read: (body) => {
        const outputs = field(readJson(body), 'outputs')
        const bytes = Array.isArray(outputs) ? field(outputs[0], 'beef') : undefined
        return Array.isArray(bytes) ? this.parsed(() => readBeef(Uint8Array.from(bytes))) : undefined
      },
      // The host does not know this form of query, or the lookup service.
      statuses: { 400: undefined, 404: undefined },
    })
  }

  private parsed<Parsed>(parse: () => Parsed): Parsed {
    return parsed(`${this.client.name} returned an invalid BEEF`, parse)
  }
}
