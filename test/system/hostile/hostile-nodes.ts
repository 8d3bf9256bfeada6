import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import { encodeMineNode, UNCLAIMED } from '../../../backend/src/protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, type ProfileName, termsOf } from '../../../backend/src/protocol/profile.js'
import { fundedTransaction } from '../../../src/cli/fake-transactions.js'
import { covenantCode } from '../../../src/mining/covenant.js'
import type { HostileRequest } from './hostile-server.js'
import { DIFFICULTY } from './stage.js'

/** A node that somebody wrote: it names the right tree, and is none of it. */
export interface ForgedNode {
  outpoint: Outpoint
  /** Of the transaction that holds it, with a path of a block that nobody mined. */
  beef: Uint8Array
}

/**
 * Forges a root as a mint would leave it.
 *
 * @param options.codeBytes The length of its code; that of the covenant unless set.
 */
export function forgedRoot(options: {
  genesis: Outpoint
  profile?: ProfileName
  codeBytes?: number
}): ForgedNode {
  const { genesis, profile = 'local', codeBytes } = options
  const code =
    codeBytes === undefined
      ? covenantCode(termsOf(PROFILES[profile], { covenantVersion: 2, difficulty: DIFFICULTY }))
      : new Uint8Array(codeBytes).fill(OP_NOP)
  const seed = crypto.getRandomValues(new Uint8Array(32))
  const lockingScript = encodeMineNode({ code, genesis, claimed: UNCLAIMED, domain: '', seed })
  const { txid, beef } = fundedTransaction([{ satoshis: 1, lockingScript }])
  return { outpoint: { txid, vout: 0 }, beef }
}

const OP_NOP = 0x61

/** What `/svc/names/mine/{name}` answers for a node. */
export function nodeAnswer({ outpoint }: { outpoint: Outpoint }, domain = ''): object {
  return { domain, outpoint: formatOutpoint(outpoint) }
}

/** What `/lookup` answers for one output: in binary where that is asked for (`X-Aggregation`), else in JSON. */
export function lookupAnswer(
  { outpoint, beef }: ForgedNode,
  { headers }: Pick<HostileRequest, 'headers'>,
): object | Uint8Array {
  const { txid, vout } = outpoint
  if (headers['x-aggregation'] !== 'yes')
    return { type: 'output-list', outputs: [{ beef: Array.from(beef), outputIndex: vout }] }
  return concatBytes(Uint8Array.of(1), fromHex(txid), Uint8Array.of(vout, 0), beef)
}
