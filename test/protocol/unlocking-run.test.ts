import { Curve } from '@bsv/sdk'
import { ascii, concatBytes, joinBytes } from '../../backend/src/protocol/bytes.js'
import type { RunBudget } from '../../backend/src/protocol/script-cost.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { runBudget, takeMintUnlocking } from '../../backend/src/protocol/unlocking-run.js'
import { assemble, type ScriptPart } from '../../src/mining/script.js'
import { encodeTransaction } from '../support/raw-transaction.js'

const FIVE = ['a', 'b', 'c', 'd', 'e'].map((letter) => ascii(letter))
const [character, nonce, ownerLock, trailing, preimage] = FIVE
const PUSHED = { character, nonce, ownerLock, trailing, preimage }

/** Takes the five items of an input with this unlocking script. */
function take(script: Uint8Array, options: { version?: number; budget?: RunBudget } = {}) {
  const { version = 2, budget } = options
  const outpoint = { txid: '11'.repeat(32), vout: 0 }
  const raw = encodeTransaction({ inputs: [{ outpoint, unlockingScript: script }], outputs: [], version })
  return takeMintUnlocking({ transaction: readTransaction(raw), input: 0, satoshis: 1, budget })
}

const after = (...parts: ScriptPart[]) => assemble([...parts, ...FIVE])
const times = (count: number, part: ScriptPart): ScriptPart => new Array<ScriptPart>(count).fill(part)
/** Puts on the stack an item of 2 to the power of `doublings` bytes. */
const long = (doublings: number): ScriptPart => ['1', times(doublings, 'DUP CAT')]

test('pushes cost nothing, however many they are, and of any version', () => {
  const many = joinBytes([new Uint8Array(1_000_000), assemble(FIVE)])
  for (const version of [0, 1, 2]) {
    const budget = { units: 0 }
    expect(take(many, { version, budget })).toEqual(PUSHED)
    expect(budget.units).toBe(0)
  }
})

test('code costs, and what is left is for the next', () => {
  const budget = runBudget()
  const { units } = budget
  expect(take(after('NOP'), { budget })).toEqual(PUSHED)
  expect(budget.units).toBeLessThan(units - 600)
  const spent = units - budget.units
  take(after('NOP'), { budget })
  expect(budget.units).toBe(units - 2 * spent)
  const last = { units: spent }
  expect(take(after('NOP'), { budget: last })).toEqual(PUSHED)
  expect(last.units).toBe(0)
  expect(() => take(after('NOP'), { budget: { units: spent - 1 } })).toThrow(
    expect.objectContaining({ code: 'TOO_COSTLY', name: 'MintError' }),
  )
})

// Each would take the interpreter seconds, hours, or more memory than there is.
test.each<[string, Uint8Array]>([
  ['more opcodes than are worth a look', new Uint8Array(1_000_000).fill(0x61)],
  ['an item that doubles', after(long(31))],
  ['copies of long items', after(long(20), 'DUP DUP', times(100, '3DUP'))],
  ['copies of long items on the alt stack', after(long(19), times(100, 'DUP TOALTSTACK'))],
  ['an item as long as a number says', after('1 2147483647 NUM2BIN')],
  ['an item as long as no number can say', after('1', new Uint8Array(40).fill(0x7f), 'NUM2BIN')],
  ['a number shifted far to the left', after('1 8589934592 LSHIFTNUM')],
  ['bytes shifted far to the left', after('1 8589934592 LSHIFT')],
  ['long bytes shifted by one', after(long(20), '1 LSHIFT')],
  ['long bytes shifted back by one', after(long(20), '1 RSHIFT')],
  ['a number that is squared', after('7', times(30, 'DUP MUL'))],
  ['long numbers divided', after(long(18), long(17), 'DIV')],
  ['long items hashed', after(long(20), times(40, 'DUP HASH256 DROP'))],
  ['many signatures', after(times(1000, ['0', new Uint8Array(33).fill(2), 'CHECKSIG DROP']))],
  ['many keys', after('0', times(1000, '0'), '1', times(1000, '1'), '1000 CHECKMULTISIG')],
  ['a stack that is turned over', after(times(60_000, '0'), times(60_000, '50000 ROLL'))],
  ['branches in branches', after(times(60_000, '0 IF'), times(60_000, 'ENDIF'))],
])('costs too much: %s', (_, script) => {
  const budget = runBudget()
  expect(() => take(script, { budget })).toThrow(expect.objectContaining({ code: 'TOO_COSTLY' }))
  expect(budget.units).toBeGreaterThanOrEqual(0)
})

test.each<[string, ScriptPart]>([
  ['a hundred kilobytes joined and hashed', [long(17), 'HASH256 DROP']],
  ['a signature that is none', ['0', concatBytes(Uint8Array.of(2), generatorX()), 'CHECKSIG DROP']],
  ['a number of a hundred bytes, squared', [long(6), 'DUP MUL DROP']],
  ['what a branch that is not taken would cost', ['0 IF 1 2147483647 NUM2BIN ENDIF']],
  ['a thousand opcodes', times(1000, 'NOP')],
])('does not cost too much: %s', (_, part) => {
  expect(take(after(part))).toEqual(PUSHED)
})

test('what went wrong in a script is told apart from what it would have cost', () => {
  for (const script of [after('0 VERIFY'), after('1 IF'), after('RESERVED'), assemble([...FIVE, 'DROP'])]) {
    expect(() => take(script)).toThrow(expect.objectContaining({ code: 'BAD_UNLOCKING' }))
  }
  for (const version of [0, 1]) {
    const budget = { units: 0 }
    expect(() => take(after('NOP'), { version, budget })).toThrow(
      expect.objectContaining({ code: 'BAD_UNLOCKING' }),
    )
  }
})

test('an item that a number made is what the interpreter made of it', () => {
  const items = take(assemble([...FIVE.slice(0, 4), '5 3 NUM2BIN']))
  expect(items.preimage).toEqual(Uint8Array.of(5, 0, 0))
})

/** The X of the curve's generator. */
function generatorX(): Uint8Array {
  return Uint8Array.from(new Curve().g.getX().toArray('be', 32))
}
