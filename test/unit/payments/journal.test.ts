import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PrivateKey, type Transaction, UnlockingScript } from '@bsv/sdk'
import { writeBeef } from '../../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { readTransactions } from '../../../src/cli/payment.js'
import type { Draft } from '../../../src/payments/draft.js'
import { Journal, type Purpose, WALLET } from '../../../src/payments/journal.js'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const key = new PrivateKey(11)
const [address, lock] = [key.toAddress(), toHex(p2pkhLockOf(key.toPublicKey()))]
const unlockingScript = new UnlockingScript()

function opened(path: string, network = 'main'): Journal {
  const journal = new Journal(path, network)
  onTestFinished(() => journal.close())
  return journal
}
const fileIn = async (): Promise<string> => join(await servers.folder(), 'minetree/payments.db')

/** A draft without inputs and outputs of its own. */
const draft: Draft = { what: 'the test', description: 'A test', inputs: [], outputs: [], maxFee: 1 }
const purpose = (subject: string): Purpose => ({ kind: 'move', subject, place: 'here' })

/** Stores a payment that spends coins into change. */
async function store(
  journal: Journal,
  subject: string,
  given: { spends?: [Transaction, number][]; change?: number; of?: Draft; payer?: string },
): Promise<Transaction> {
  const { spends = [], change = 9, of = draft, payer = address } = given
  const transaction = coinsFor(key, change)
  delete transaction.merklePath
  for (const [sourceTransaction, sourceOutputIndex] of spends)
    transaction.addInput({ sourceTransaction, sourceOutputIndex, unlockingScript })
  const paid = { transaction, beef: writeBeef(transaction), fee: 3 }
  await journal.exclusively(async () => journal.add(paid, { ...purpose(subject), payer, draft: of }))
  return transaction
}
const valuesOf = (journal: Journal, given: Transaction[]): (number | undefined)[] =>
  journal.coins({ lock, address }, given).map(({ transaction, vout }) => transaction.outputs[vout]?.satoshis)

test('what is paid for is there again after a stop, in order, and nobody else can read it', async () => {
  const path = await fileIn()
  const journal = opened(path)
  const first = await store(journal, 'b', { change: 10 })
  const second = await store(journal, 'a', { spends: [[first, 0]], change: 7 })
  journal.setState(first.id('hex'), 'sent')
  journal.setAdmitted(first.id('hex'))
  journal.close()
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(dirname(path))).mode & 0o777).toBe(0o700)
  expect(opened(path).payments()).toMatchObject([
    { txid: first.id('hex'), subject: 'b', state: 'sent', isAdmitted: true, fee: 3, payer: address },
    { txid: second.id('hex'), subject: 'a', state: 'pending', isAdmitted: false },
  ])
})

test('coins are what the key unlocks and none of the transactions spends', async () => {
  const [first, second] = [coinsFor(key, 5, 6), coinsFor(new PrivateKey(12), 7)] as const
  const spending = coinsFor(key, 8)
  spending.addInput({ sourceTXID: first.id('hex'), sourceOutputIndex: 1, unlockingScript })
  expect(valuesOf(opened(await fileIn()), [first, second, spending, first])).toEqual([5, 8])
})

test.each(['pending', 'sent', 'mined', 'lost'] as const)(
  'coins of a payment that is %s are those that nobody can take back',
  async (state) => {
    const journal = opened(await fileIn())
    const coin = coinsFor(key, 5, 6)
    const paid = await store(journal, 'a', { spends: [[coin, 0]] })
    if (state === 'lost') expect(await journal.lose(paid.id('hex'))).toBe(true)
    else journal.setState(paid.id('hex'), state)
    const expected = { pending: [6], sent: [6, 9], mined: [6, 9], lost: [5, 6] }[state]
    expect(valuesOf(journal, [coin]).sort()).toEqual(expected)
    // On another chain the change is none, and the coin is spent all the same.
    const elsewhere = valuesOf(opened(journal.path, 'local'), [coin]).sort()
    expect(elsewhere).toEqual(expected.filter((each) => each !== 9))
  },
)

test('a payment that is lost takes those with it that spend its change', async () => {
  const journal = opened(await fileIn())
  const coin = coinsFor(key, 50)
  const first = await store(journal, 'a', { spends: [[coin, 0]], change: 40 })
  const second = await store(journal, 'b', { spends: [[first, 0]], change: 30 })
  await store(journal, 'c', { spends: [[second, 0]], change: 20 })
  const apart = await store(journal, 'd', { change: 2 })
  await journal.lose(first.id('hex'))
  expect(journal.payments().map(({ state }) => state)).toEqual(['lost', 'lost', 'lost', 'pending'])
  expect([apart, coin].map((each) => journal.isReserved(`${each.id('hex')}_0`))).toEqual([false, false])
  expect(await journal.lose('ab'.repeat(32))).toBe(false)
})

test('neither is a coin spent twice, nor the same paid for twice, as long as the first may count', async () => {
  const journal = opened(await fileIn())
  const coin = coinsFor(key, 50)
  const first = await store(journal, 'a', { spends: [[coin, 0]] })
  const undecided = { code: 'UNDECIDED', message: expect.stringContaining(first.id('hex')) }
  await expect(store(journal, 'b', { spends: [[coin, 0]] })).rejects.toMatchObject(undecided)
  await expect(store(journal, 'a', {})).rejects.toMatchObject(undecided)
  journal.setState(first.id('hex'), 'sent')
  await expect(store(journal, 'a', {})).rejects.toMatchObject(undecided)
  // A refusal leaves nothing behind.
  expect(journal.payments()).toHaveLength(1)
  journal.setAdmitted(first.id('hex'))
  await store(journal, 'a', {})
  // Anybody may spend a node.
  const node = { source: coin, vout: 0, description: 'A node', isOpen: true }
  await store(journal, 'x', { spends: [[coin, 0]], of: { ...draft, inputs: [node] } })
})

test('what only its holder spends is spent once where a wallet pays, too, and its coins are its own', async () => {
  const journal = opened(await fileIn())
  const name = coinsFor(key, 1)
  const of = { ...draft, inputs: [{ source: name, vout: 0, description: 'A name' }] }
  const coin = coinsFor(key, 50)
  const both = { payer: WALLET, of, spends: [name, coin].map((each): [Transaction, number] => [each, 0]) }
  const first = await store(journal, 'a', { ...both, change: 40 })
  const undecided = { code: 'UNDECIDED', message: expect.stringContaining(first.id('hex')) }
  await expect(store(journal, 'b', { ...both, change: 30 })).rejects.toMatchObject(undecided)
  await store(journal, 'c', { payer: WALLET, spends: [[coin, 0]], change: 20 })
})

test('a coin that another transaction has spent is none, and one that only may be spent comes last', async () => {
  const journal = opened(await fileIn())
  const coin = coinsFor(key, 50, 40)
  const first = await store(journal, 'a', { spends: [[coin, 0]] })
  await journal.lose(first.id('hex'))
  const doubts = journal.coins({ lock, address }, [coin]).map(({ isDoubtful }) => isDoubtful)
  expect(doubts).toEqual([true, false])
  await journal.lose(first.id('hex'), { txid: 'ab'.repeat(32), outpoint: `${coin.id('hex')}_0` })
  expect(valuesOf(journal, [coin])).toEqual([40])
})

test('a journal that cannot be used is named', async () => {
  const file = join(await servers.folder(), 'file')
  await writeFile(file, '')
  expect(() => opened(join(file, 'payments.db'))).toThrow(/^cannot use the journal of payments .*EEXIST/)
  await writeFile(file, 'no database at all, but longer than the header of one: '.repeat(9))
  expect(() => opened(file)).toThrow(expect.objectContaining({ code: 'JOURNAL' }))
})

describe('coins in files', () => {
  const beefOf = (transaction: Transaction): Uint8Array => Uint8Array.from(transaction.toBEEF())
  const idsOf = (transactions: Transaction[]): string[] => transactions.map((each) => each.id('hex')).sort()

  test('are read as BEEF, in bytes or in hex, with their proofs', async () => {
    const folder = join(await servers.folder(), 'coins')
    await mkdir(folder)
    const [bytes, hex] = [coinsFor(key, 5), coinsFor(key, 6)] as const
    await writeFile(join(folder, 'a.beef'), beefOf(bytes))
    await writeFile(join(folder, 'b.hex'), Buffer.from(beefOf(hex)).toString('hex'))
    const read = await readTransactions([folder])
    expect(idsOf(read)).toEqual(idsOf([bytes, hex]))
    expect(read.every(({ merklePath }) => merklePath !== undefined)).toBe(true)
  })

  test('are not taken without a proof', async () => {
    const file = join(await servers.folder(), 'coin.hex')
    const coin = coinsFor(key, 5)
    await writeFile(file, coin.toHex())
    await expect(readTransactions([file])).rejects.toThrow(`${coin.id('hex')} carries no proof`)
  })
})
