import { ScriptWalk } from '../../../backend/src/protocol/script-walk.js'

/** Reads a script, and fails once that has walked over more opcodes than a script has bytes, so many times. */
export function readInPasses<Read>(
  passes: number,
  script: Uint8Array,
  read: (script: Uint8Array) => Read,
): Read {
  const { next } = ScriptWalk.prototype
  let left = passes * script.length
  ScriptWalk.prototype.next = function (this: ScriptWalk) {
    if (left-- <= 0) throw new Error(`it was walked over more than ${passes} times`)
    return next.call(this)
  }
  try {
    return read(script)
  } finally {
    ScriptWalk.prototype.next = next
  }
}
