import { OP, ScriptWalk } from './script-walk.js'

const DROP = 0x75
const TWO_DROP = 0x6d
const CHECKSIG = 0xac
const KEY_LENGTH = 33

/** The most fields of a lock that are read, and their bytes together: hashing them has to stay cheap. */
export const MAX_PUSH_DROP_FIELDS = 256
export const MAX_PUSH_DROP_BYTES = 64 * 1024

/** A lock that pushes fields and drops them, and can be spent with one key (BRC-48). */
export interface PushDropLock {
  /** The compressed public key. */
  key: Uint8Array
  /** Views into the script; one that OP_0 pushes is empty. */
  fields: Uint8Array[]
  /**
   * Where the key stands: `before` the fields, as the SDK puts it by default, or `after` them, as BRC-48 has it.
   */
  position: 'before' | 'after'
}

/**
 * Reads a script that starts with a push-drop lock. After the lock there may be inscription envelopes, which are never run, and
 * an OP_RETURN with anything behind it. The SDK's `PushDrop.decode` accepts any script with a key in front, also one that
 * somebody else can spend; here, only a signature of the key can spend.
 *
 * @returns Undefined for any other script, and for more fields or bytes than are read. Never throws; takes linear time.
 */
export function readPushDrop(script: Uint8Array): PushDropLock | undefined {
  const walk = new ScriptWalk(script)
  let pushes = readFields(walk)
  let position: PushDropLock['position'] = 'after'
  let key: Uint8Array | undefined
  const [first] = pushes ?? []
  if (pushes?.length === 1 && walk.op === CHECKSIG) {
    position = 'before'
    key = first
    pushes = readFields(walk)
  }
  if (pushes === undefined || !dropsAll(walk, pushes.length)) return undefined
  if (position === 'after') {
    // The walk is at the opcode after the drops.
    key = walk.data
    if (!walk.next() || walk.op !== CHECKSIG) return undefined
    if (!advance(walk)) return undefined
  }
  if (key?.length !== KEY_LENGTH || !isInert(walk)) return undefined
  return { key, fields: pushes, position }
}

/** The pushes up to the next other opcode, where the walk stops; undefined if there are too many, or the script ends. */
function readFields(walk: ScriptWalk): Uint8Array[] | undefined {
  const fields: Uint8Array[] = []
  let bytes = 0
  while (walk.next()) {
    const { pushedLength, pushed } = walk
    if (pushedLength === undefined || pushed === undefined) return fields
    bytes += pushedLength
    if (fields.length === MAX_PUSH_DROP_FIELDS || bytes > MAX_PUSH_DROP_BYTES) return undefined
    fields.push(pushed)
  }
  return undefined
}

/** Whether drops for exactly this many fields are next; the walk stops at the opcode after them. */
function dropsAll(walk: ScriptWalk, count: number): boolean {
  let left = count
  for (;;) {
    if (walk.op === TWO_DROP) left -= 2
    else if (walk.op === DROP) left -= 1
    if (left < 0 || (walk.op !== TWO_DROP && walk.op !== DROP)) return false
    if (!advance(walk)) return false
    if (left === 0) return true
  }
}

/** Moves on; at the clean end of the script, `op` becomes OP_RETURN. False if the script breaks off in a push. */
function advance(walk: ScriptWalk): boolean {
  const isAtEnd = walk.end === walk.script.length
  if (walk.next()) return true
  walk.op = OP.RETURN
  return isAtEnd
}

/** Whether nothing from the current opcode on can change how the script ends. */
function isInert(walk: ScriptWalk): boolean {
  while (walk.op !== OP.RETURN) if (!skipNeverRun(walk) || !advance(walk)) return false
  return true
}

/** Moves over OP_FALSE, OP_IF and pushes to OP_ENDIF. */
function skipNeverRun(walk: ScriptWalk): boolean {
  if (walk.op !== OP.FALSE || !walk.next() || !isAt(walk, OP.IF)) return false
  while (walk.next()) if (walk.pushedLength === undefined) return isAt(walk, OP.ENDIF)
  return false
}

function isAt({ op }: ScriptWalk, wanted: number): boolean {
  return op === wanted
}
