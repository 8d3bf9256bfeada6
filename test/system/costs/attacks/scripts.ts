import { OP } from '@bsv/sdk'
import { concatBytes, fromHex } from '../../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../../backend/src/protocol/script-walk.js'
import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { ANYONE, bareTransaction, pick } from '../../../support/protocol/transactions.js'
import { type Attack, submitting } from '../attack.js'

const MiB = 1024 * 1024

/** A signature in strict DER that is none of anything, all flags signed, and the generator as its key. */
const SIGNATURE = fromHex(
  '304402207fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a002207fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a041',
)
const KEY = fromHex('0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798')

function repeated(opcodes: readonly number[], times: number): Uint8Array {
  return new Uint8Array(opcodes.length * times).map((_, at) => opcodes[at % opcodes.length] ?? 0)
}

/** Puts an item of zeros on the stack that is as long as a number says. */
function longItem(bytes: number): Uint8Array {
  const length = Uint8Array.of(bytes & 0xff, (bytes >> 8) & 0xff, (bytes >> 16) & 0xff)
  return concatBytes(Uint8Array.of(OP.OP_1), encodePush(length), Uint8Array.of(OP.OP_NUM2BIN))
}

/** A loop over one long item: each time, an opcode makes something of a copy of it. */
function overLongItem(bytes: number, opcode: number, times: number): Uint8Array {
  return concatBytes(longItem(bytes), repeated([OP.OP_DUP, opcode, OP.OP_DROP], times))
}

function checksigs(times: number): Uint8Array {
  const check = [OP.OP_2DUP, OP.OP_CHECKSIG, OP.OP_DROP]
  return concatBytes(
    encodePush(SIGNATURE),
    encodePush(KEY),
    repeated(check, times),
    repeated([OP.OP_2DROP], 1),
  )
}

/** Of what takes the interpreter longest, for what it is charged: found by running each opcode on items of many lengths. */
const COSTLY: Record<string, Uint8Array> = {
  'RIPEMD160 of 2.6 MB': overLongItem(2_600_000, OP.OP_RIPEMD160, 1000),
  'SHA1 of 2.6 MB': overLongItem(2_600_000, OP.OP_SHA1, 1000),
  'HASH256 of 1 MB': overLongItem(1_000_000, OP.OP_HASH256, 1000),
  'INVERT of 2.6 MB': concatBytes(longItem(2_600_000), repeated([OP.OP_INVERT], 3000)),
  'BIN2NUM of 2.6 MB': overLongItem(2_600_000, OP.OP_BIN2NUM, 1000),
  'LSHIFT of 30 KB': concatBytes(longItem(30_000), repeated([OP.OP_1, OP.OP_LSHIFT], 1500)),
  'a thousand signatures': checksigs(970),
}

/** A BEEF whose subject is not proven and spends a proven coin that has this lock. */
function spending(lockingScript: Uint8Array, chain: FakeChain): Uint8Array {
  const coin = bareTransaction({
    inputs: [chain.madeUpCoin()],
    outputs: [{ satoshis: 1000, lockingScript }],
  })
  const inputs = [{ txid: coin.txid, vout: 0 }]
  const outputs = [{ satoshis: 1, lockingScript: ANYONE }]
  return beefOf(bareTransaction({ inputs, outputs }), { proven: false, with: [coin] })
}

/** Scripts of transactions that nobody has mined, near `MAX_SCRIPT_WORK`. */
export function scriptAttacks({ parts = 4900 }: { parts?: number } = {}): Attack[] {
  const unproven = { statuses: [200, 400, 413, 429, 503] }
  return [
    {
      name: 'long-scripts',
      title: 'unproven, a million opcodes that do nothing',
      prepare:
        ({ chain }) =>
        () => {
          const nothing = new Uint8Array(MiB - 1000).fill(OP.OP_NOP)
          return submitting(spending(concatBytes(nothing, ANYONE), chain))
        },
      allowance: { requests: 100, connections: 100 },
      ...unproven,
    },
    {
      name: 'signatures',
      title: 'unproven, 3 kB of script: a thousand signatures',
      prepare:
        ({ chain }) =>
        () =>
          submitting(spending(checksigs(970), chain)),
      allowance: { requests: 100, connections: 100 },
      ...unproven,
    },
    {
      name: 'hash-steps',
      title: 'unproven, 3 kB of script: RIPEMD160 of 2.6 MB over and over',
      prepare:
        ({ chain }) =>
        () =>
          submitting(spending(COSTLY['RIPEMD160 of 2.6 MB'] ?? ANYONE, chain)),
      allowance: { requests: 100, connections: 100 },
      ...unproven,
    },
    {
      name: 'costly-scripts',
      title: `unproven, 3 kB of script each: ${Object.keys(COSTLY).join(', ')}`,
      prepare: ({ chain }) => {
        const scripts = Object.values(COSTLY)
        return (index) => submitting(spending(pick(scripts, index), chain))
      },
      allowance: { requests: 95, connections: 95 },
      ...unproven,
    },
    {
      name: 'many-inputs',
      title: `unproven, ${parts} inputs and ${parts} outputs`,
      prepare:
        ({ chain }) =>
        () => {
          const outputs = Array.from({ length: parts }, () => ({ satoshis: 1, lockingScript: OPEN_LOCK }))
          const coin = bareTransaction({ inputs: [chain.madeUpCoin()], outputs })
          return submitting(spendingAll(coin, outputs))
        },
      allowance: { requests: 20, connections: 20 },
      ...unproven,
    },
    ...[MiB - 20_000, 15_000_000].map(
      (bytes): Attack => ({
        name: bytes < MiB ? 'signed-mebibyte' : 'signed-15-megabytes',
        title: `unproven, as many signatures of a transaction of ${(bytes / 1e6).toFixed(1)} MB as may be`,
        prepare:
          ({ chain }) =>
          () => {
            const times = Math.min(900, Math.floor(290e6 / (100_000 + 2 * bytes)))
            const lockingScript = checksigs(times)
            const coin = bareTransaction({
              inputs: [chain.madeUpCoin()],
              outputs: [{ satoshis: 1000, lockingScript }],
            })
            const outputs = [{ satoshis: 1, lockingScript: new Uint8Array(bytes).fill(OP.OP_NOP) }]
            const subject = bareTransaction({ inputs: [{ txid: coin.txid, vout: 0 }], outputs })
            return submitting(beefOf(subject, { proven: false, with: [coin] }))
          },
        allowance: bytes < MiB ? { requests: 100, connections: 100 } : { requests: 30, connections: 30 },
        ...unproven,
      }),
    ),
    {
      name: 'signed-inputs',
      title: 'unproven, 1,000 inputs with a signature of each',
      prepare:
        ({ chain }) =>
        () => {
          const outputs = Array.from({ length: 1000 }, () => ({ satoshis: 1, lockingScript: checksigs(1) }))
          const coin = bareTransaction({ inputs: [chain.madeUpCoin()], outputs })
          return submitting(
            spendingAll(
              coin,
              outputs.map((output) => ({ ...output, lockingScript: ANYONE })),
            ),
          )
        },
      allowance: { requests: 100, connections: 100 },
      ...unproven,
    },
  ]
}

function spendingAll(
  coin: FakeTransaction,
  outputs: readonly { satoshis: number; lockingScript: Uint8Array }[],
): Uint8Array {
  const unlockingScript = Uint8Array.of(OP.OP_1)
  const inputs = outputs.map((_, vout) => ({ outpoint: { txid: coin.txid, vout }, unlockingScript }))
  return beefOf(bareTransaction({ inputs, outputs }), { proven: false, with: [coin] })
}
