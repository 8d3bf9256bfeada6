import { PrivateKey } from '@bsv/sdk'
import { concatBytes, joinBytes } from '../../../backend/src/protocol/bytes.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { assemble, type ScriptPart } from '../../../src/mining/covenant.js'
import type { MintOverrides } from './fake-chain.js'

/** A mint that a block may hold and not every node relays, mostly by its unlocking script. */
export interface NonStrictUnlocking {
  has: string
  version: number
  script(right: Uint8Array): Uint8Array
  /** What else is different about it. */
  overrides?: MintOverrides
}

const PUBLIC_KEY = Uint8Array.from(new PrivateKey(7).toPublicKey().toDER() as number[])

/** Script before the five pushes, and behind them. */
const around =
  (before: ScriptPart, behind: ScriptPart = []) =>
  (right: Uint8Array): Uint8Array =>
    concatBytes(assemble(before), right, assemble(behind))

/** The first push, of the character, written with a length of two bytes. */
function wide(right: Uint8Array): Uint8Array {
  const [character = new Uint8Array()] = readPushes(right, { limit: 1 })
  return joinBytes([Uint8Array.of(0x4c, 1), character, right.subarray(2)])
}

/**
 * One of each kind: what a block may hold, and what two interpreters may disagree about. A signature that is checked here
 * signs the locking script as well on nodes after Chronicle, which the SDK leaves out: what is nonsense to the one is valid
 * to the other. Versions of 0x80000000 and more are negative to a node, and the largest there are to the SDK.
 */
export const NON_STRICT: readonly NonStrictUnlocking[] = [
  { has: 'a push below the five', version: 1, script: around('7') },
  { has: 'a thousand pushes below the five', version: 2, script: around(new Array(1000).fill('0')) },
  { has: 'a push that is not minimal', version: 1, script: wide },
  { has: 'an opcode that does nothing', version: 2, script: around([], 'NOP') },
  { has: 'an OP_RETURN', version: 2, script: around([], 'RETURN') },
  { has: 'an OP_ELSE after an OP_ELSE', version: 2, script: around('1 IF 0 VERIFY ELSE ELSE ENDIF') },
  {
    has: 'a signature to check',
    version: 2,
    script: around([new Uint8Array(71).fill(0x30), PUBLIC_KEY, 'CHECKSIGVERIFY']),
  },
  { has: 'an opcode of Chronicle', version: 2, script: around('VER DROP') },
  { has: 'code of version 0x80000000', version: 0x80000000, script: around([], 'NOP') },
  { has: 'code of version 0xffffffff', version: 0xffffffff, script: around([], 'NOP') },
  {
    has: 'code that takes long to run',
    version: 2,
    script: (right) => concatBytes(right, new Uint8Array(100_000).fill(0x61)),
  },
  { has: 'a transaction of version 3', version: 3, script: (right) => right },
  {
    has: 'more than 500,000 bytes of pushes',
    version: 1,
    script: (right) => right,
    overrides: { trailing: [{ satoshis: 1, lockingScript: new Uint8Array(500_000).fill(0x51) }] },
  },
]

/** What makes a mint of a fake chain have such an unlocking script. */
export function nonStrictlyUnlocked({ version, script, overrides }: NonStrictUnlocking): MintOverrides {
  return { version, unlockingScript: script, ...overrides }
}
