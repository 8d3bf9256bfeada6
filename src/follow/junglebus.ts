import type { Proof, TransactionRecord } from '../../backend/src/graph/records.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { MAX_PROOF_BYTES, parseSourced, parseSourcedProof, type SingleSource } from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/** A spend is 32 bytes; of anything else, no more than this is read. */
const MAX_SPEND_BYTES = 1024

/**
 * JungleBus of GorillaPool, over HTTP:
 *
 * - `GET /v1/transaction/get/<txid>/bin`: the raw transaction; 404 if it is unknown.
 * - `GET /v1/transaction/proof/<txid>/bin`: its merkle path (BUMP, BRC-74); 404 if it is unmined.
 * - `GET /v1/txo/spend/<txid>_<vout>`: the 32 bytes of the spender's txid, in display order; empty if it is unspent.
 *
 * This is not documented: it is what its public clients request and expect (b-open-io/1sat-sdk, `packages/cli`;
 * b-open-io/1sat-stack and b-open-io/go-junglebus; the crawler of shruggr/opns-overlay). A 404 for a spend does not say that
 * the output is unspent.
 */
export class JungleBusSource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = true

  constructor(options: SourceClientOptions) {
    this.client = new SourceClient(options)
  }

  get asked(): SourceClient['asked'] {
    return this.client.asked
  }

  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    // Both at once: hardly any transaction lacks a proof.
    const proving = this.proof(txid)
    // If the other fails first, nothing awaits this one.
    proving.catch(() => undefined)
    const record = await this.client.ask(`/v1/transaction/get/${txid}/bin`, {
      maxBytes,
      tooLarge: 'TOO_LARGE',
      read: (raw) => parseSourced(txid, raw),
    })
    const proof = await proving
    return record && { ...record, ...(proof && { proof }) }
  }

  async proof(txid: string): Promise<Proof | undefined> {
    return await this.client.ask(`/v1/transaction/proof/${txid}/bin`, {
      maxBytes: MAX_PROOF_BYTES,
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
    if (answer === undefined) throw new ChainSourceError('BAD_ANSWER', `${name} does not know ${shown}`)
    return answer.spender
  }
}
