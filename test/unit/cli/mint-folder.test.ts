import { mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PrivateKey, type Transaction, UnlockingScript } from '@bsv/sdk'
import { MintFolder, type MintState } from '../../../src/cli/mint-folder.js'
import { coinsOf, readTransactions } from '../../../src/cli/mint-payers.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const key = new PrivateKey(11)
const beefOf = (transaction: Transaction): Uint8Array => Uint8Array.from(transaction.toBEEF())
const idsOf = (transactions: Transaction[]): string[] => transactions.map((each) => each.id('hex')).sort()

/** A folder with mints in each state. */
async function filled() {
  const path = join(await servers.folder(), 'mints')
  const folder = await MintFolder.at(path)
  const [sent, lost, pending] = [coinsFor(key, 10), coinsFor(key, 20), coinsFor(key, 30)] as const
  for (const each of [sent, lost, pending]) await folder.keep(each.id('hex'), beefOf(each))
  await folder.setState(sent.id('hex'), 'known')
  await folder.setState(lost.id('hex'), 'lost')
  await folder.release()
  return { path, sent, lost, pending }
}

test('what is kept is there again after a stop, in the state that it was in', async () => {
  const { path, sent, lost, pending } = await filled()
  const again = await MintFolder.at(path)
  const states = Object.fromEntries((await again.read()).mints.map(({ txid, state }) => [txid, state]))
  expect(states).toEqual({
    [sent.id('hex')]: 'known',
    [lost.id('hex')]: 'lost',
    [pending.id('hex')]: 'pending',
  })
  await again.release()
  expect((await readdir(path)).sort()).toEqual(
    [`${sent.id('hex')}.beef`, `${lost.id('hex')}.lost.beef`, `${pending.id('hex')}.pending.beef`].sort(),
  )
})

test('nobody else can read a mint', async () => {
  const { path, pending } = await filled()
  expect((await stat(path)).mode & 0o777).toBe(0o700)
  expect((await stat(join(path, `${pending.id('hex')}.pending.beef`))).mode & 0o777).toBe(0o600)
})

test('a mint goes through its states, and one that is not stored has none', async () => {
  const { path, pending } = await filled()
  const folder = await MintFolder.at(path)
  const txid = pending.id('hex')
  for (const state of ['sent', 'known', 'known', 'lost'] as const) {
    await folder.setState(txid, state)
    expect(await folder.stateOf(txid)).toBe(state)
  }
  await folder.setState('ab'.repeat(32), 'lost')
  expect(await folder.stateOf('ab'.repeat(32))).toBeUndefined()
  expect((await folder.read()).mints).toHaveLength(3)
})

test('a file that was not written to its end is passed over, and other files are', async () => {
  const { path } = await filled()
  await writeFile(join(path, `${'ab'.repeat(32)}.part`), 'half')
  await writeFile(join(path, 'notes.txt'), 'mine')
  expect((await (await MintFolder.at(path)).read()).mints).toHaveLength(3)
})

test('a file that holds something else is named, and the others are read', async () => {
  const { path, sent } = await filled()
  const file = join(path, `${'ab'.repeat(32)}.beef`)
  const folder = await MintFolder.at(path)
  for (const bytes of [new Uint8Array(), beefOf(sent), beefOf(sent).subarray(0, 50)]) {
    await writeFile(file, bytes)
    const { mints, damaged } = await folder.read()
    expect({ mints: mints.length, damaged }).toEqual({ mints: 3, damaged: [file] })
  }
  await rm(file)
  await mkdir(file)
  expect((await folder.read()).damaged).toEqual([file])
})

test('a mint that a full disk has no room for leaves nothing behind', async () => {
  const { path } = await filled()
  const folder = await MintFolder.at(path)
  const before = await readdir(path)
  const txid = 'cd'.repeat(32)
  await symlink('/dev/full', join(path, `${txid}.part`))
  const keeping = folder.keep(txid, new Uint8Array(9))
  await expect(keeping).rejects.toMatchObject({
    name: 'CommandError',
    message: expect.stringContaining('ENOSPC'),
  })
  expect(await readdir(path)).toEqual(before)
})

test('a folder is for one process at a time, and for the next where that was killed', async () => {
  const { path } = await filled()
  const folder = await MintFolder.at(path)
  await expect(MintFolder.at(path)).rejects.toMatchObject({
    message: expect.stringContaining(`${path} is in use by the process ${process.pid}: wait for it`),
    exit: 'unavailable',
  })
  await folder.release()
  // No process has this number.
  await writeFile(join(path, 'lock'), '4194305')
  await (await MintFolder.at(path)).release()
  expect((await readdir(path)).includes('lock')).toBe(false)
})

test('a folder that cannot be is named', async () => {
  const path = join(await servers.folder(), 'file')
  await writeFile(path, '')
  await expect(MintFolder.at(path)).rejects.toThrow(/^cannot use .*EEXIST/)
})

describe('coins', () => {
  test('are what the key unlocks and none of the transactions spends', async () => {
    const other = new PrivateKey(12)
    const [first, second] = [coinsFor(key, 5, 6), coinsFor(other, 7)] as const
    const spending = coinsFor(key, 8)
    const unlockingScript = new UnlockingScript()
    spending.addInput({ sourceTXID: first.id('hex'), sourceOutputIndex: 1, unlockingScript })
    const coins = coinsOf(key, { coins: [first, second, spending, first], mints: [] })
    expect(coins.map(({ transaction, vout }) => transaction.outputs[vout]?.satoshis)).toEqual([5, 8])
  })

  test.each<[MintState, number[]]>([
    ['pending', [6]],
    ['sent', [6, 9]],
    ['known', [6, 9]],
    ['lost', [5, 6]],
  ])('of a mint that is %s are those that nobody can take back', (state, satoshis) => {
    const coin = coinsFor(key, 5, 6)
    const transaction = coinsFor(key, 9)
    const unlockingScript = new UnlockingScript()
    transaction.addInput({ sourceTransaction: coin, sourceOutputIndex: 0, unlockingScript })
    const mints = [{ txid: transaction.id('hex'), state, transaction }]
    const coins = coinsOf(key, { coins: [coin], mints })
    expect(coins.map((each) => each.transaction.outputs[each.vout]?.satoshis)).toEqual(satoshis)
  })

  test('are read from files of BEEF, as bytes or as hex, with their proofs', async () => {
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
