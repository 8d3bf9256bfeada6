import type { Proof, TransactionRecord } from '../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { field, readJson } from '../client/bounded-fetch.js'
import {
  MAX_PROOF_BYTES,
  parseSourced,
  parseSourcedProof,
  parseSourcedTxid,
  type SingleSource,
} from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/** A spend is a short JSON object. */
const MAX_SPEND_BYTES = 4096

/**
 * Another overlay host with the wallet routes of this one (`docs/http.md`):
 *
 * - `/svc/beef/<txid>/tx`: a transaction of which a topic holds an output; 404 for any other.
 * - `/svc/beef/<txid>/proof`: its merkle path (BUMP, BRC-74); 404 if the host has none.
 * - `/svc/txo/<outpoint>/spend`: `{spendTxid}`, null if the host knows no spender; 404 if no topic holds the output.
 *
 * It knows its topics and not the chain, so an output that it knows no spender for may well be spent.
 */
export class OverlaySource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = false

  constructor(options: SourceClientOptions) {
    this.client = new SourceClient(options)
  }

  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    const record = await this.client.ask(`/svc/beef/${txid}/tx`, {
      maxBytes,
      tooLarge: 'TOO_LARGE',
      read: (raw) => parseSourced(txid, raw),
    })
    // Of few transactions does it hold an output: usually there is nothing to prove.
    const proof = record && (await this.proof(txid))
    return record && { ...record, ...(proof && { proof }) }
  }

  async proof(txid: string): Promise<Proof | undefined> {
    return await this.client.ask(`/svc/beef/${txid}/proof`, {
      maxBytes: MAX_PROOF_BYTES,
      read: (bump) => parseSourcedProof(txid, bump),
    })
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    const { name } = this.client
    const of = `the spend of ${formatOutpoint(outpoint)}`
    return await this.client.ask(`/svc/txo/${formatOutpoint(outpoint)}/spend`, {
      maxBytes: MAX_SPEND_BYTES,
      read: (body) => {
        const answer = readJson(body)
        if (typeof answer !== 'object' || answer === null)
          throw new ChainSourceError('BAD_ANSWER', `${name} returned no JSON object for ${of}`)
        const spender = field(answer, 'spendTxid')
        return spender === null ? undefined : parseSourcedTxid(spender, { name, of })
      },
    })
  }
}
