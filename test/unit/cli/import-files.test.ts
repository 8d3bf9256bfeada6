import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { runImport } from '../../../src/cli/import.js'
import { type FoundFiles, findTransactions } from '../../../src/cli/import-files.js'
import { readConfig } from '../../../src/server/config/config.js'
import { type Node, openNode } from '../../../src/server/node.js'
import { keptOutput } from '../../support/cli/commands.js'
import { collectGarbage } from '../../support/collect-garbage.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { SILENT, treeOf, useServers } from '../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const mints = chain.mintAll('abcde')
const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
const all: FakeTransaction[] = [chain.genesis, ...mints, note]

/** Writes a file of a folder of its own. */
async function file(contents: Uint8Array | string, name = 'file'): Promise<string> {
  const path = join(await servers.folder(), name)
  await writeFile(path, contents)
  return path
}

async function txids(...paths: string[]): Promise<string[]> {
  const { transactions } = await findTransactions(paths)
  return transactions.map(({ txid }) => txid)
}

/** At which height the first BEEF that is offered for a transaction proves it. */
async function provenAt(found: FoundFiles, txid: string): Promise<number | undefined> {
  const transaction = found.transactions.find((each) => each.txid === txid)
  if (transaction === undefined || !found.isInBeef(transaction)) return undefined
  const { value } = await found.beefsOf(transaction).next()
  return value ? readBeef(value).proof(txid)?.height : undefined
}

const hex = ({ raw }: FakeTransaction): string => toHex(raw)

test.each<[string, Uint8Array | string]>([
  ['bytes', note.raw],
  ['hex', hex(note)],
  ['hex in capitals', hex(note).toUpperCase()],
  ['hex and a line break', `${hex(note)}\n`],
  ['hex between empty lines', `\r\n\r\n  ${hex(note)}  \r\n\n`],
])('a raw transaction is found as %s', async (_, contents) => {
  const found = await findTransactions([await file(contents)])
  const [only] = found.transactions
  if (only === undefined) throw new Error('nothing was found')
  const read = [only.txid, toHex(await found.raw(only)), found.isInBeef(only)]
  expect(read).toEqual([note.txid, hex(note), false])
  expect(found).toMatchObject({ transactions: { length: 1 }, skipped: [] })
})

test.each<[string, Uint8Array | string]>([
  ['bytes', beefOf(note)],
  ['hex', toHex(beefOf(note))],
])('a BEEF is found as %s, with its proof', async (_, contents) => {
  const found = await findTransactions([await file(contents)])
  expect(found.transactions.map(({ txid }) => txid)).toEqual([note.txid])
  expect(await provenAt(found, note.txid)).toBe(note.height)
})

test('a line each, of either kind', async () => {
  const lines = [hex(note), toHex(beefOf(chain.genesis)), ...mints.map(hex)]
  const all = [note, chain.genesis, ...mints].map(({ txid }) => txid)
  expect(await txids(await file(lines.join('\n')))).toEqual(all)
})

test('all that a BEEF holds is found, and each transaction once', async () => {
  const [a, ab] = mints
  if (a === undefined || ab === undefined) throw new Error('no mints')
  const beef = beefOf(ab, { with: [chain.genesis, a] })
  const found = await txids(await file(beef), await file(hex(a)), await file(beef))
  expect(found).toEqual([chain.genesis.txid, a.txid, ab.txid])
})

test('parents come before children, whatever the order of the lines', async () => {
  const path = await file('')
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray(all, { minLength: all.length }), async (shuffled) => {
      await writeFile(path, shuffled.map(hex).join('\n'))
      const found = await txids(path)
      expect([...found].sort()).toEqual(all.map(({ txid }) => txid).sort())
      const chained = found.filter((txid) => txid !== note.txid)
      expect(chained).toEqual([chain.genesis, ...mints].map(({ txid }) => txid))
    }),
    { numRuns: 50 },
  )
})

test('of several copies of a transaction, the most complete is used', async () => {
  const proven = await file(beefOf(note))
  const unproven = await file(beefOf(note, { proven: false }))
  const raw = await file(hex(note))
  const first = [proven, unproven, raw]
  for (const paths of [first, first.toReversed(), [unproven, proven, raw], [raw, proven, unproven]]) {
    const found = await findTransactions(paths)
    expect(found.transactions).toHaveLength(1)
    expect(await provenAt(found, note.txid)).toBe(note.height)
  }
  const halves = await findTransactions([raw, unproven])
  expect(halves.transactions.map((each) => halves.isInBeef(each))).toEqual([true])
})

test('a folder is searched to its depths, and links are not followed', async () => {
  const folder = await servers.folder()
  const outside = await file(hex(note))
  await mkdir(join(folder, 'a/b'), { recursive: true })
  await writeFile(join(folder, 'a/b/deep.hex'), hex(chain.genesis))
  await writeFile(join(folder, 'top.beef'), beefOf(mints[0] ?? note))
  await writeFile(join(folder, 'a/readme.md'), '# no transaction')
  await symlink(outside, join(folder, 'link'))
  const { transactions, skipped } = await findTransactions([folder])
  expect(transactions.map(({ txid }) => txid)).toEqual([chain.genesis.txid, mints[0]?.txid])
  expect(skipped).toEqual([join(folder, 'a/readme.md')])
})

test.each<[string, Uint8Array | string]>([
  ['nothing', ''],
  ['white space', ' \n\n '],
  ['words', 'not a transaction'],
  ['hex of something else', 'deadbeef'],
  ['half a byte of hex', `${hex(note)}0`],
  ['a transaction that breaks off', note.raw.subarray(0, -1)],
  ['a transaction and a byte', Uint8Array.of(...note.raw, 0)],
  ['a BEEF that breaks off', beefOf(note).subarray(0, -1)],
  ['JSON', '{"txid":"00"}'],
  ['zeros', new Uint8Array(1000)],
])('a file of %s is skipped by name, and the others are read', async (_, contents) => {
  const odd = await file(contents)
  const { transactions, skipped } = await findTransactions([odd, await file(hex(note))])
  expect(skipped).toEqual([odd])
  expect(transactions.map(({ txid }) => txid)).toEqual([note.txid])
})

test('a line that is none is skipped by its number', async () => {
  const path = await file(`${hex(note)}\n\ndeadbeef\n${hex(chain.genesis)}\n`)
  const { transactions, skipped } = await findTransactions([path])
  expect(transactions.map(({ txid }) => txid)).toEqual([note.txid, chain.genesis.txid])
  expect(skipped).toEqual([`${path}:3`])
})

test('a path that is not there is an error that names it', async () => {
  const missing = join(await servers.folder(), 'missing')
  const finding = findTransactions([await file(hex(note)), missing])
  await expect(finding).rejects.toMatchObject({ code: 'USAGE' })
  await expect(finding).rejects.toThrow(`cannot read ${missing}: `)
})

test('a proof in one file, its sources in others and the values of its coins are put together', async () => {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(0) }] })
  const spender = chain.move(coin, 0, p2pkh(1))
  const beefs = [beefOf(spender, { proven: false }), beefOf(coin), beefOf(spender)]
  const files = await Promise.all(beefs.map((beef) => file(beef)))
  for (const paths of [files, files.toReversed()]) {
    const found = await findTransactions(paths)
    const transaction = found.transactions.find(({ txid }) => txid === spender.txid)
    if (transaction === undefined) throw new Error('the spender was not found')
    const { value: beef } = await found.beefsOf(transaction).next()
    if (!beef) throw new Error('no BEEF is offered')
    const contents = readBeef(beef)
    expect(contents.subject.txid).toBe(spender.txid)
    expect(contents.proof(spender.txid)?.height).toBe(spender.height)
    expect(contents.transaction(coin.txid)).toBeDefined()
  }
})

test('what is held does not grow with the bytes of the files', async () => {
  const body = (index: number) => ({ contentType: 'a/b', body: new Uint8Array(4 * 1024 ** 2).fill(index) })
  const folder = await servers.folder()
  for (let index = 0; index < 26; index++)
    await writeFile(join(folder, `${index}.beef`), beefOf(chain.inscribe(body(index))))
  collectGarbage()
  const before = process.memoryUsage().arrayBuffers
  const found = await findTransactions([folder])
  let read = 0
  for (const transaction of found.transactions)
    for await (const beef of found.beefsOf(transaction)) read += beef.length
  expect(read).toBeGreaterThan(26 * 4 * 1024 ** 2)
  collectGarbage()
  // 104 MiB were read, and 64 MiB are kept; what other suites of this process hold may come and go.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(92 * 1024 ** 2)
})

test('a mint is imported without what places its ordinals if that is more than a submission may have', async () => {
  const tree = new FakeChain()
  const coins = Array.from({ length: 8 }, () =>
    tree.spend({ inputs: [], outputs: [{ satoshis: 10, lockingScript: p2pkh(1) }] }),
  )
  const mint = tree.mint('a', { funding: coins.map((transaction) => ({ transaction, vout: 0 })) })
  const paths = [await file(beefOf(mint, { with: [tree.genesis, ...coins] }))]
  const env = { ...treeOf(tree.deployment), CHAIN_TRACKER: 'scripts-only', MAX_BEEF_TRANSACTIONS: '5' }
  const config = readConfig({ ...env, DATA_DIR: await servers.folder() })
  const open = (): Promise<Node> => openNode({ config, logger: SILENT })
  const { output, written } = keptOutput()
  const { signal } = new AbortController()
  // The coins are nothing by themselves, and each is needed.
  await runImport({ open, paths, trust: false, output, signal })
  expect(await written()).toContain('admitted 2 of 10')
})
