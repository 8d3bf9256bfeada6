import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { outpointOfLabel } from '../../../backend/src/protocol/host-label.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { type Files, writeFiles } from '../../support/cli/commands.js'
import { type Answer, type TestServer, useServers } from '../../support/server/test-server.js'

// The command as it is installed, as a process of its own, and a server of a local network.

const cli = useBuiltCli()
const servers = useServers()

/** The address of the public key hash of 20 zero bytes. */
const NOBODY = '1111111111111111111114oLvT2'

const folderOf = async (files: Files): Promise<string> => await writeFiles(await servers.folder(), files)

/** Publishes at the host of an outpoint, or as a stream, and gives the path at which the server itself has that. */
async function published(server: TestServer, args: string[]): Promise<string> {
  const ended = await cli.call(['publish', ...args, '--url', server.url])
  expect(ended).toEqual({
    code: 0,
    signal: null,
    stdout: expect.stringMatching(/^http:\S+\n$/),
    stderr: expect.stringMatching(
      /^minetree: publishing [\d,]+ files?, [\d.]+ \w+, in [\d,]+ transactions? of [\d,]+ bytes: [^\n]+ on a local network none\n$/,
    ),
  })
  return pathOf(server, ended.stdout.trim())
}

function pathOf(server: TestServer, url: string): string {
  if (url.startsWith(`${server.url}/`)) return url.slice(server.url.length)
  const { host, port, pathname } = new URL(url)
  const [label = '', rest] = host.split(/\.(.*)/)
  const outpoint = outpointOfLabel(label)
  expect({ rest, port, pathname, isOutpoint: outpoint !== undefined }).toEqual({
    ...{ rest: `c.localhost:${port}`, port: new URL(server.url).port, pathname: '/', isOutpoint: true },
  })
  return `/content/${outpoint && formatOutpoint(outpoint)}`
}

const file = ({ status, headers, body }: Answer) => ({ status, type: headers['content-type'], body })
const found = (type: string, body: Uint8Array | string) => ({ status: 200, type, body: Buffer.from(body) })

test('a server without hosts for sites shows what is published below /content/, with a word about that', async () => {
  const server = await servers.start({ GATEWAY_HOST: 'none' })
  const folder = await folderOf({ 'index.html': 'x' })
  const { stdout, stderr } = await cli.run(['publish', folder, '--url', server.url])
  expect(stderr).toContain('this server has no separate hosts for sites')
  const index = await server.ask(`${stdout.trim().slice(server.url.length)}index.html`)
  expect(index.body.toString()).toBe('x')
})

describe('what is published is served', () => {
  const server = servers.start()
  const get = async (path: string): Promise<Answer> => (await server).ask(path)

  test('a folder, with its files at their paths', async () => {
    const picture = randomBytes(200_000)
    const folder = await folderOf({
      'index.html': '<link rel=stylesheet href=style/main.css>é',
      'style/main.css': 'p { color: red }',
      'style/fonts/a b.unknown': picture,
      'empty.txt': '',
      nothing: undefined,
    })
    const path = await published(await server, [folder])
    expect(path).toMatch(/^\/content\/[0-9a-f]{64}_0$/)
    const root = path
    const { status, headers } = await get(`${path}/`)
    expect([301, 302, 307, 308]).toContain(status)
    const { url } = await server
    expect(new URL(headers.location ?? '', `${url}${path}/`).href).toBe(`${url}${root}/index.html`)
    const index = '<link rel=stylesheet href=style/main.css>é'
    expect(file(await get(`${root}/index.html`))).toEqual(found('text/html; charset=utf-8', index))
    const style = await get(`${root}/style/main.css`)
    expect(file(style)).toEqual(found('text/css; charset=utf-8', 'p { color: red }'))
    const deep = await get(`${root}/style/fonts/a%20b.unknown`)
    expect(file(deep)).toEqual(found('application/octet-stream', picture))
    expect(file(await get(`${root}/empty.txt`))).toEqual(found('text/plain; charset=utf-8', ''))
    expect(file(await get(`${root}/nothing?raw`)).status).toBe(200)
    expect((await get(`${root}?raw`)).headers['content-type']).toBe('gw-fs/json')
    // The folder is the first output, so its txid alone leads there.
    expect(file(await get(`${root.slice(0, -2)}/style/main.css`)).status).toBe(200)
  })

  test('a folder in bytes, if that is asked for, with the same files', async () => {
    const folder = await folderOf({ 'index.html': 'in bytes', 'style/main.css': 'p {}' })
    const path = await published(await server, [folder, '--format', 'dir'])
    expect(file(await get(`${path}/style/main.css`))).toEqual(found('text/css; charset=utf-8', 'p {}'))
    for (const below of ['', '/style'])
      expect((await get(`${path}${below}?raw`)).headers['content-type']).toBe('ordfs/dir')
  })

  test('a folder without an index, with a word about that', async () => {
    const folder = await folderOf({ 'a.txt': 'a' })
    const { url } = await server
    const { code, stdout, stderr } = await cli.run(['publish', folder, '--url', `${url}/`])
    const path = pathOf(await server, stdout.trim())
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^minetree: publishing 1 file, [^\n]+\nminetree: the folder has no index.html: append the path of a file to this URL\n$/,
      ),
    })
    expect(file(await get(`${path}/a.txt`)).body).toEqual(Buffer.from('a'))
  })

  test('a file, an ordinal of its own each time, which nobody owns unless somebody is named', async () => {
    const path = join(await folderOf({ 'note.txt': 'a note' }), 'note.txt')
    const first = await published(await server, [path])
    expect(first).toMatch(/^\/content\/[0-9a-f]{64}_0$/)
    expect(file(await get(first))).toEqual(found('text/plain; charset=utf-8', 'a note'))
    expect((await get(`${first}:-2`)).headers['x-origin']).toBe(first.slice('/content/'.length))
    const owner = encodeAddress('07'.repeat(20), 'main')
    const second = await published(await server, [path, '--owner', owner])
    expect(second).not.toBe(first)
    const ownerOf = async (published: string) =>
      (await get(published.replace('/content/', '/svc/gateway/metadata/'))).json
    expect(await ownerOf(first)).toMatchObject({ owner: NOBODY })
    expect(await ownerOf(second)).toMatchObject({ owner })
  })

  /** The content of a stream's ordinal at each step, from its origin on. */
  async function steps(path: string): Promise<{ contents: Answer[]; tip: Answer }> {
    const [, origin = ''] = /^\/svc\/gateway\/stream\/([0-9a-f]{64}_0)$/.exec(path) ?? []
    const tip = await get(`/content/${origin}:-1`)
    expect(tip.headers['x-origin']).toBe(origin)
    const contents: Answer[] = []
    for (let step = 0; step <= Number(tip.headers['x-ord-seq']); step++) {
      const { headers } = await get(`/content/${origin}:${step}`)
      contents.push(await get(`/content/${headers['x-outpoint']}`))
    }
    return { contents, tip }
  }

  test('a stream of chunks of 1 MiB, each at its outpoint, the ordinal at the last', async () => {
    const film = randomBytes(2.5 * 1024 * 1024)
    const path = await published(await server, [join(await folderOf({ 'a.mp4': film }), 'a.mp4'), '--stream'])
    const { contents, tip } = await steps(path)
    expect(contents.map(({ headers }) => headers['content-type'])).toEqual([
      'video/mp4;stream=gw',
      'gw/stream',
      'gw/stream',
    ])
    expect(contents.map(({ body }) => body.length)).toEqual([2 ** 20, 2 ** 20, 2 ** 19])
    expect(Buffer.concat(contents.map(({ body }) => body)).equals(film)).toBe(true)
    const stream = await get(path)
    expect(stream.headers['content-type']).toBe('video/mp4;stream=gw')
    expect(stream.body.equals(film)).toBe(true)
    expect(tip.headers['x-outpoint']).toBe(contents.at(-1)?.headers['x-outpoint'])
  })
})
