import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { field, readJson } from '../../client/bounded-fetch.js'
import { MAX_PROOF_BYTES, parseSourcedProof, type SingleSource, sightingsOneByOne } from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { SourceClient, type SourceClientOptions } from './source-client.js'

/**
 * What a status of ARC says about a transaction (https://bitcoin-sv.github.io/arc, Transaction statuses); undefined if nothing.
 * `STORED`, `SENT_TO_NETWORK` and the like say what ARC did, not what a node answered. Double spends and missing parents decide
 * nothing. Statuses that ARC does not have come from Arcade (bsv-blockchain/arcade).
 */
export function sightingOfStatus(status: unknown): Sighting | undefined {
  switch (status) {
    case 'ACCEPTED_BY_NETWORK':
    case 'SEEN_ON_NETWORK':
    case 'SEEN_MULTIPLE_NODES':
    case 'MINED':
    case 'IMMUTABLE':
      return 'seen'
    case 'REJECTED':
    case 'INVALID':
    case 'MALFORMED':
      return 'rejected'
    default:
      return undefined
  }
}

/**
 * A transaction processor: `GET /v1/tx/<txid>`, or `/tx/<txid>` at Arcade, has the status of a transaction that was sent through
 * it, and its merkle path once it is mined; 404 for any other. It returns no transactions and no spenders.
 */
export class ArcSource implements SingleSource {
  readonly client: SourceClient
  readonly knowsUnspent = false
  readonly knowsNodes = false
  /** Paths where statuses may be, until one has worked. */
  private places = ['/v1/tx', '/tx']

  constructor(options: SourceClientOptions) {
    this.client = new SourceClient(options)
  }

  async transaction(): Promise<undefined> {}

  async spenderOf(): Promise<undefined> {}

  async proof(txid: string): Promise<Proof | undefined> {
    return (await this.status(txid))?.proof
  }

  async sightings(txids: readonly string[]): Promise<Map<string, Sighting>> {
    return await sightingsOneByOne(txids, async (txid) => (await this.status(txid))?.sighting)
  }

  private async status(txid: string): Promise<Status | undefined> {
    for (const place of this.places) {
      const status = await this.statusAt(place, txid)
      if (status === undefined) continue
      this.places = [place]
      return status
    }
    return undefined
  }

  private async statusAt(place: string, txid: string): Promise<Status | undefined> {
    return await this.client.ask(`${place}/${txid}`, {
      maxBytes: 2 * MAX_PROOF_BYTES,
      read: (body) => {
        const answer = readJson(body)
        if (field(answer, 'txid') !== txid)
          throw new ChainSourceError('BAD_ANSWER', `${this.client.name} returned no status of ${txid}`)
        const path = field(answer, 'merklePath')
        const isPath = typeof path === 'string' && /^(?:[0-9a-f]{2})+$/i.test(path)
        return {
          sighting: sightingOfStatus(field(answer, 'txStatus')),
          ...(isPath && { proof: parseSourcedProof(txid, fromHex(path)) }),
        }
      },
    })
  }
}

interface Status {
  sighting: Sighting | undefined
  proof?: Proof
}
