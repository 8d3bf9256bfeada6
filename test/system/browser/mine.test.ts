import { P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
import type { Page } from 'puppeteer-core'
import { encodeAddress, p2pkhLock } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { checkMint, ownerCommitment } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { verifiedLiveNode } from '../../../src/mining/live-node.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { mineName } from '../../../src/mining/mine-name.js'
import { serverDeployment } from '../../../src/mining/server-deployment.js'
import { FAKE_MINT_PAYER } from '../../../src/payments/mints.js'
import { retype, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { order, shownMints } from '../../support/browser/mine-page.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { builtPages } from '../../support/cli/built-package.js'
import { covenantChain } from '../../support/mining/covenant-mints.js'
import { IS_NIGHTLY, sampleOf } from '../../support/nightly.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const OWNER = 'ab'.repeat(20)
const ADDRESS = encodeAddress(OWNER, 'main')

const servers = useServers()
const pages = await builtPages()
const cli = useBuiltCli()
const browser = useBrowser()

/** A server of a local network with a tree of its own, and its page. */
async function localNetwork(version = '2'): Promise<TestServer> {
  return await servers.start({ DIFFICULTY: '8', COVENANT_VERSION: version }, { pages, deploy: deployTree })
}

/** Mines in this process, in competition with the page. */
async function mineElsewhere({ url }: TestServer, name: string): Promise<void> {
  const { deployment } = await serverDeployment(url)
  const index = new HttpMineIndex({ url })
  await mineName({ ...FAKE_MINT_PAYER, name, deployment, index, workers: 0, chainTracker: 'scripts only' })
}

const hashesOf = async (page: Page): Promise<number> =>
  Number((await textOf(page, '#hashes'))?.replaceAll(',', ''))

inBrowser.each(sampleOf(['1', '2'], 2))(
  'a name is mined by keyboard, character by character, and submitted: version %s',
  async (version) => {
    const server = await localNetwork(version)
    const { page, complaints } = await browser.open(`${server.url}/mine`)
    await order(page, { name: 'a-9', owner: ADDRESS })
    await says(page, '#status', 'All of a-9 is mined.')
    expect(
      await page.$eval('#status', (line) => {
        const { top, bottom } = line.getBoundingClientRect()
        return top >= 0 && bottom <= innerHeight
      }),
    ).toBe(true)

    const { deployment } = await serverDeployment(server.url)
    const shown = await shownMints(page)
    expect(shown.map(({ title }) => title)).toEqual(['The mint of a-9', 'The mint of a-', 'The mint of a'])
    for (const { transaction, fields, badge } of shown) {
      const mint = checkMint({ transaction, input: 0, deployment })
      expect(mint.ownerLock).toEqual(p2pkhLock(OWNER))
      expect(fields).toMatchObject({
        Node: formatOutpoint(transaction.inputs[0] ?? deployment.genesis),
        Domain: mint.domain || 'the root (empty)',
        Character: mint.character,
        Nonce: toHex(mint.nonce),
        'New seed': toHex(mint.seed),
        'Transaction id': transaction.txid,
      })
      expect(badge).toBe(`This server has it: ${mint.name} is minted.`)
      const { json } = await server.ask(`/svc/names/${mint.name}`)
      expect(json).toMatchObject({ origin: `${transaction.txid}_2`, tip: { owner: ADDRESS } })
    }
    const letters = await page.$$eval('#letters span', (all) => all.map(({ dataset }) => dataset.state))
    expect(letters).toEqual(['mined', 'mined', 'mined'])
    await says(page, '#name-state', 'a-9 is mined, by you.')
    // It looks like a success, and says what comes next.
    expect(await page.$eval('#progress', (section) => (section as HTMLElement).dataset.kind)).toBe('done')
    expect(await textOf(page, '#next')).toContain('minetree publish site/ --name a-9')
    const { host } = new URL(server.url)
    expect(await page.$$eval('#next a', (links) => links.map(({ href }) => href))).toEqual([
      `http://a-9.localhost:${host.split(':')[1]}/`,
      `${server.url}/name/a-9`,
      `${server.url}/mine?name=a-9`,
    ])
    expect(complaints).toEqual([])
  },
)

inBrowser('what is mined of a name is said while it is typed', async () => {
  const server = await localNetwork()
  await mineElsewhere(server, 'ab')
  const { page } = await browser.open(`${server.url}/mine`)
  await page.waitForSelector('#start:not(:disabled)')
  const said: [typed: string, text: string][] = [
    ['q', 'None of it is mined yet.'],
    ['abcd', 'Mined: ab. Missing: cd.'],
    ['ab', 'ab is taken.'],
    ['a b', 'This is not a name.'],
  ]
  for (const [typed, text] of said) {
    await retype(page, '#name', typed)
    await says(page, '#name-state', text)
  }
})

inBrowser('a mint that nobody pays for is shown, and others may pay for it later', async () => {
  // The command as it is installed; at night, at the difficulty of the live network.
  const difficulty = IS_NIGHTLY ? 22 : 12
  const { url: listening } = cli.start(['serve'], {
    PORT: '0',
    DATA_DIR: await servers.folder(),
    DIFFICULTY: String(difficulty),
    COVENANT_VERSION: '2',
  })
  const url = await listening
  // The server fills its network meanwhile, and its first name moves the root.
  await until(async () => (await fetch(`${url}/svc/names/h`)).status === 200)
  const { page, complaints } = await browser.open(`${url}/mine`)
  await order(page, { name: '9-', owner: ADDRESS, payer: 'nobody' })
  await says(page, '#status', 'Found.')

  const { deployment } = await serverDeployment(url)
  expect(deployment.difficulty).toBe(difficulty)
  const index = new HttpMineIndex({ url })
  const node = await verifiedLiveNode({ name: '9-', deployment, index, chainTracker: 'scripts only' })
  if (node === undefined) throw new Error('nobody has submitted anything, and the node is gone')
  const { transaction: source, satoshis, lockingScript } = node
  const spent = { satoshis, lockingScript }
  const [shown] = await shownMints(page)
  if (shown === undefined) throw new Error('nothing is shown')
  expect(shown.badge).toContain('nobody pays yet')
  expect(shown.transaction.outputs).toHaveLength(3)
  const mint = checkMint({ transaction: shown.transaction, input: 0, deployment, spent })
  expect(mint.name).toBe('9')
  expect(mint.ownerLock).toEqual(p2pkhLock(OWNER))
  expect(mint.nonce.subarray(0, 8)).toEqual(ownerCommitment({ ...mint, deployment }))
  expect(shown.badge).toContain('Only the owner below can use this solution')
  expect(shown.fields.Owner).toBe(ADDRESS)

  const key = new PrivateKey(11)
  const transaction = Transaction.fromHex(toHex(shown.transaction.raw))
  const [input] = transaction.inputs
  if (input !== undefined) input.sourceTransaction = source
  const unlockingScriptTemplate = new P2PKH().unlock(key)
  transaction.addInput({
    sourceTransaction: coinsFor(key, 500),
    sourceOutputIndex: 0,
    unlockingScriptTemplate,
  })
  await transaction.sign()
  expect(await transaction.verify('scripts only')).toBe(true)
  expect(complaints).toEqual([])
})

inBrowser('in a tree of the first covenant the page says that a solution can be taken', async () => {
  const { nameMarker } = PROFILES.local
  const { deployment, genesis } = covenantChain({ covenantVersion: 1, difficulty: 8, nameMarker })
  const server = await servers.start(treeOf(deployment), { pages })
  await server.take(beefOf(genesis))
  const { page } = await browser.open(`${server.url}/mine`)
  await order(page, { name: 'q', owner: ADDRESS, payer: 'nobody' })
  await says(page, '#status', 'Found.')
  await says(page, '#owner-hint', 'anyone who sees the solution can use it for another owner')
  const [shown] = await shownMints(page)
  if (shown === undefined) throw new Error('nothing is shown')
  expect(shown.badge).toContain('Show it to nobody before it is sent')
  expect(shown.badge).not.toContain('Only the owner')
  expect(checkMint({ transaction: shown.transaction, input: 0, deployment }).name).toBe('q')
})

inBrowser(
  'a search reports its progress, in the requested number of workers, and stops at once',
  async () => {
    // Of so much work that no solution is found in this life.
    const chain = new FakeChain({ difficulty: 60 })
    const server = await servers.start(treeOf(chain.deployment), { pages })
    await server.take(beefOf(chain.genesis))
    const { page, complaints } = await browser.open(`${server.url}/mine`)
    await order(page, { name: 'q', workers: 3 })
    await page.waitForFunction(() => /[1-9]/.test(document.querySelector('#rate')?.textContent ?? ''))
    const before = await hashesOf(page)
    await page.waitForFunction(
      (seen) => Number(document.querySelector('#hashes')?.textContent?.replaceAll(',', '')) > seen,
      {},
      before,
    )
    expect(page.workers()).toHaveLength(3)
    expect(await textOf(page, '#expected')).toMatch(/^[0-9,]+ (days|years)$/)
    expect(await textOf(page, '#letters [data-state=mining]')).toBe('q')
    const ended = new Promise<void>((resolve) => {
      page.on('workerdestroyed', () => {
        if (page.workers().length === 0) resolve()
      })
    })
    // Where the keyboard is when the button to start has gone.
    await page.keyboard.press('Enter')
    await says(page, '#status', 'Stopped.')
    await page.waitForFunction(() => document.activeElement?.id === 'start')
    await ended
    expect(await shownMints(page)).toEqual([])
    expect(complaints).toEqual([])
  },
)

inBrowser('a competing mint restarts the search from its successor node', async () => {
  const server = await localNetwork()
  let isHeld = true
  const searches: (() => void)[] = []
  const { page, complaints } = await browser.open(`${server.url}/mine`, async (each) => {
    await each.setRequestInterception(true)
    each.on('request', (request) => {
      // A search begins when its worker comes.
      const go = (): void => void request.continue()
      if (isHeld && request.url().endsWith('/search-worker.js')) searches.push(go)
      else go()
    })
  })
  await order(page, { name: 'q', workers: 1 })
  await says(page, '#status', 'Searching for q.')
  await mineElsewhere(server, 'r')
  await says(page, '#status', 'Somebody else has spent the node: searching for q again')
  isHeld = false
  searches[1]?.()
  await says(page, '#status', 'All of q is mined.')
  const [shown, ...more] = await shownMints(page)
  expect(more).toEqual([])
  const { origin } = (await server.ask('/svc/names/r')).json as { origin: string }
  expect(shown?.transaction.inputs[0]).toMatchObject({ txid: origin.replace(/_2$/, ''), vout: 0 })
  expect(complaints).toEqual([])
})
