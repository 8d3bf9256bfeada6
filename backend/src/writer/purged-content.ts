import { type Fact, readTransactionFact } from '../facts/log.js'
import type { PurgedValue } from '../facts/registers.js'
import { sha256 } from '../graph/native-hash.js'
import { inscriptionOf } from '../graph/transaction-records.js'
import { contentsOf } from '../index/outputs.js'
import { toHex } from '../protocol/bytes.js'
import { readEnvelope } from '../protocol/inscription.js'
import { OP, ScriptWalk } from '../protocol/script-walk.js'
import {
  outputOf,
  readTransaction,
  type TransactionOutput,
  type TransactionView,
} from '../protocol/transaction.js'

/** An output whose body is removed. */
export interface Holder {
  vout: number
  output: TransactionOutput
}

/** The outputs of a transaction that inscribe one of some bodies. @param hashes SHA-256 of the bodies, in hex. */
export function holdersOf(view: TransactionView, hashes: ReadonlySet<string>): Holder[] {
  return view.outputs.flatMap((output, vout) => {
    const { content } = inscriptionOf(output)
    return content && hashes.has(sha256(content.body).toString('hex')) ? [{ vout, output }] : []
  })
}

/** What the log keeps about the body of an output. */
export function purgedValueOf(output: TransactionOutput, view: TransactionView): PurgedValue {
  const { sha, ctype, clen, coff } = contentsOf(output, view)
  return {
    sha256: toHex(sha ?? new Uint8Array()),
    contentType: String(ctype),
    length: clen ?? 0,
    position: coff,
  }
}

/** Overwrites the body that an output inscribes, in the bytes of its transaction. Everything else still parses as before. */
export function overwriteContent(output: TransactionOutput): void {
  const { lockingScript } = output
  const { content } = inscriptionOf(output)
  if (content === undefined) return
  if (content.body.buffer === lockingScript.buffer) {
    content.body.fill(0)
    return
  }
  const { span } = readEnvelope(lockingScript)
  // A body joined from several pushes comes last in its envelope. (A number that B pushes is an opcode.)
  if (span === undefined || content.source === 'b') return
  let before = -content.body.length
  for (const walk = pushesIn(lockingScript, span); walk.next() && walk.end < span.to; )
    before += walk.pushedLength ?? 0
  for (
    const walk = pushesIn(lockingScript, span);
    walk.next() && walk.end < span.to;
    before -= walk.pushedLength ?? 0
  )
    if (before <= 0) overwritePush(walk)
}

/**
 * A copy of the body of a transaction's fact with the content of one output overwritten, also where a mint repeats that output,
 * or its beginning, in the script that unlocks the node.
 */
export function withoutContent(fact: Pick<Fact, 'key' | 'body'>, vout: number): Buffer {
  const [key, body] = [fact.key, Buffer.from(fact.body)]
  const view = readTransaction(readTransactionFact({ key, body }).raw, { txid: toHex(key) })
  const output = outputOf(view, vout)
  if (output === undefined) return body
  const before = Buffer.from(output.lockingScript)
  overwriteContent(output)
  const end = before.findLastIndex((byte, at) => byte !== output.lockingScript[at]) + 1
  if (end === 0) return body
  const [repeated, overwritten] = [before.subarray(0, end), output.lockingScript.subarray(0, end)]
  for (const { unlockingScript } of view.inputs) {
    const { buffer, byteOffset, length } = unlockingScript
    const script = Buffer.from(buffer, byteOffset, length)
    for (let at = script.indexOf(repeated); at >= 0; at = script.indexOf(repeated, at))
      script.set(overwritten, at)
  }
  return body
}

function pushesIn(script: Uint8Array, span: { from: number }): ScriptWalk {
  return new ScriptWalk(script, span.from)
}

function overwritePush({ data, script, start }: ScriptWalk): void {
  if (data === undefined) script[start] = OP.ONE
  else data.fill(0)
}
