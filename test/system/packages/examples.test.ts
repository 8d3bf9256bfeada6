import { execFile } from 'node:child_process'
import { cp, readFile, symlink } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { press, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { typescript } from '../../support/cli/dependent.js'
import { installedClient, installedExample } from '../../support/cli/installed-package.js'
import { explorerWorld } from '../../support/explorer/world.js'
import { serving } from '../../support/server/connections.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

// The examples as somebody has them who copies one of their folders: installed, built, and opened in a browser.

const ROOT = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

const servers = useServers()
const browser = useBrowser()
const world = explorerWorld({ isPeaceful: true })
const server = await servers.start(treeOf(world.deployment))
await world.fill(server)

const client = await installedClient()
const react = await installedExample('react')
const withRegistry = 'missing' in client || 'missing' in react ? describe.skip : describe

/** Serves the files of a folder, as any server of files does. */
async function serveFolder(folder: string): Promise<{ url: string }> {
  return await serving((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const path = join(folder, pathname === '/' ? 'index.html' : pathname)
    readFile(path).then(
      (body) =>
        response.setHeader('Content-Type', TYPES[extname(path)] ?? 'application/octet-stream').end(body),
      () => response.writeHead(404).end(),
    )
  })
}

/** Searches for names in a page: one that is there, and one that is not. */
async function lookUp(folder: string, fill: { server?: string }): Promise<void> {
  const { url } = await serveFolder(folder)
  const query = fill.server === undefined ? `?server=${server.url}` : ''
  const { page, complaints } = await browser.open(`${url}/${query}`)
  await page.waitForSelector('input[name=name]')
  if (fill.server !== undefined) {
    await page.$eval('input[name=server]', (input) => {
      input.value = ''
    })
    await page.type('input[name=server]', fill.server)
  }
  await page.type('input[name=name]', 'alice')
  await press(page, 'button')
  await says(
    page,
    '[role=status]',
    `alice is verified at ${world.outpoints.site} and belongs to ${'1'.padStart(40, '0')}`,
  )
  await says(page, 'pre', 'Gardens, bread and small computers')
  await page.$eval('input[name=name]', (input) => {
    input.value = ''
  })
  await page.type('input[name=name]', 'nobody')
  await press(page, 'button')
  await says(page, '[role=status]', 'nobody is not claimed')
  expect((await textOf(page, 'pre')) ?? '').not.toContain('Gardens')
  // Browsers log the 404 of a name that is not claimed.
  expect(complaints.filter((each) => !each.includes('404'))).toEqual([])
  await page.close()
}

withRegistry('the examples', () => {
  const [clientFolder = '', reactFolder = ''] = [client, react].map((each) =>
    'missing' in each ? '' : each.folder,
  )

  inBrowser('the plain page looks a name up, without a build', async () => {
    const folder = await servers.folder()
    await cp(join(ROOT, 'examples/plain-page'), folder, { recursive: true })
    await symlink(join(clientFolder, 'node_modules'), join(folder, 'node_modules'))
    await lookUp(folder, { server: server.url })
  })

  test('the React example compiles by strict rules', async () => {
    await typescript(reactFolder)
  })

  inBrowser('the React example looks a name up, as Vite builds it', async () => {
    const out = await servers.folder()
    const vite = join(reactFolder, 'node_modules/vite/bin/vite.js')
    await run(process.execPath, [vite, 'build', '--outDir', out, '--emptyOutDir'], {
      // That of tests would leave the warnings of React in.
      env: { ...process.env, NODE_ENV: 'production' },
      cwd: reactFolder,
    })
    await lookUp(out, {})
  })
})
