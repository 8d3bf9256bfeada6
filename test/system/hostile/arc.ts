import { Transaction } from '@bsv/sdk'
import { ACCEPTING_ARC_STATUSES } from '../../support/mining/miners-services.js'
import type { BodyDeed } from './body-deeds.js'
import { answer, type HostileServer } from './hostile-server.js'
import { doing } from './index-front.js'
import type { Stage } from './stage.js'

/** The states in which ARC says that a transaction is (bitcoin-sv/arc, `metamorph_api`), each with HTTP 200. */
export const ARC_STATES = [
  ...ACCEPTING_ARC_STATUSES,
  'SEEN_IN_ORPHAN_MEMPOOL',
  'DOUBLE_SPEND_ATTEMPTED',
  'REJECTED',
  'MINED_IN_STALE_BLOCK',
  'UNKNOWN',
] as const

/** The statuses with which it refuses a request, and those of what stands before it. */
export const ARC_ERRORS = [
  400, 401, 403, 404, 409, 413, 422, 429, 460, 461, 462, 463, 464, 465, 466, 467, 468, 469, 471, 472, 473,
  500, 502, 503, 504,
] as const

/** What it says of the next transaction: a state, an HTTP status, or anything that a server can do to a client. */
export type ArcWord = (typeof ARC_STATES)[number] | (typeof ARC_ERRORS)[number] | BodyDeed

export interface HostileArc {
  server: HostileServer
  url: string
  /** May be changed at any time. */
  says: ArcWord
  /** The txids of what it was sent, in order, repeats included. */
  received: string[]
}

export async function hostileArc(stage: Stage, says: ArcWord = 'SEEN_ON_NETWORK'): Promise<HostileArc> {
  const received: string[] = []
  const known = new Set<string>()
  const server = await stage.serve(async (request, response) => {
    const { says } = arc
    const [, asked] = /^\/v1\/tx\/([0-9a-f]{64})$/.exec(request.path) ?? []
    let txid = asked ?? ''
    if (request.path === '/v1/tx') {
      const { rawTx } = JSON.parse(request.body.toString('utf8')) as { rawTx: string }
      const transaction = Transaction.fromHexEF(rawTx)
      txid = stage.ledger.note(transaction, 'ARC').txid
      received.push(txid)
      known.add(txid)
    } else if (!known.has(txid)) return answer(response, problem(404, txid), { status: 404 })
    if (typeof says === 'function') return await doing(says, stage)(request, response)
    if (typeof says === 'number') return answer(response, problem(says, txid), { status: says })
    answer(response, {
      ...{ blockHash: '', blockHeight: 0, extraInfo: '', merklePath: '', status: 200, title: 'OK' },
      ...{ timestamp: '2026-01-01T00:00:00.000000000Z', txStatus: says, txid },
      ...(says === 'DOUBLE_SPEND_ATTEMPTED' && { competingTxs: ['ab'.repeat(32)] }),
    })
  })
  const arc: HostileArc = { server, url: server.url, says, received }
  return arc
}

/** RFC 7807, as ARC writes it (`NewErrorFields`). */
function problem(status: number, txid: string): object {
  return {
    type: `https://bitcoin-sv.github.io/arc/#/errors?id=_${status}`,
    ...{ title: 'Refused', status, detail: `refused with ${status}`, instance: null, txid },
    extraInfo: `arc error ${status}: for a test`,
  }
}
