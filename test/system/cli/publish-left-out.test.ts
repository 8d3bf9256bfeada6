import { execFile } from 'node:child_process'
import { appendFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import {
  countOf,
  type FoundEntry,
  type FoundFile,
  findAt,
  hashOf,
  readChunks,
  readEntries,
} from '../../../src/cli/publish-files.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { type Files, writeFiles } from '../../support/cli/commands.js'
import { serving } from '../../support/server/connections.js'
import { type TestServer, useServers } from '../../support/server/test-server.js'

// What of a folder is not published, and how the command says so.

const cli = useBuiltCli()
const servers = useServers()

const folderOf = async (files: Files): Promise<string> => await writeFiles(await servers.folder(), files)

/** The files that are published, by their paths in the folder. */
function pathsOf(found: FoundEntry, above = ''): string[] {
  if (found.kind === 'file') return [above + found.name]
  return found.entries.flatMap((entry) => {
    const path = `${above}${entry.name}`
    return entry.kind === 'file' ? [path] : [`${path}/`, ...pathsOf(entry, `${path}/`)]
  })
}

async function published(folder: string): Promise<{ paths: string[]; leftOut: Record<string, string> }> {
  const { found, leftOut } = await findAt(folder, basename(folder))
  const paths = pathsOf(found).filter((path) => !path.endsWith('/'))
  return { paths, leftOut: Object.fromEntries(leftOut.map(({ path, reason }) => [path, reason])) }
}

/** Lines of an ignore file. */
const NOTHING = '\ufeff\n#a\n/\n!\n   \n//\n'

describe('of a folder is left out', () => {
  test('what is hidden, at every depth', async () => {
    const folder = await folderOf({
      '.env': 'SECRET=1',
      '.git/config': 'url = https://token@example',
      'a/.ssh/id': 'key',
      'a/.DS_Store': '',
      'a/b.txt': 'b',
      'index.html': '',
    })
    expect(await published(folder)).toEqual({
      paths: ['a/b.txt', 'index.html'],
      leftOut: {
        '.env': 'it is hidden',
        '.git/': 'it belongs to git',
        'a/.DS_Store': 'it is hidden',
        'a/.ssh/': 'it is hidden',
      },
    })
  })

  test('the settings of a node, even if they are to be brought back', async () => {
    const folder = await folderOf({
      '.publishignore': '!minetree.env',
      'minetree.env': 'ADMIN_TOKEN=x',
      a: '',
    })
    const { paths, leftOut } = await published(folder)
    expect(paths).toEqual(['a'])
    expect(leftOut['minetree.env']).toBe('it has settings, and perhaps a key')
  })

  test.each<[what: string, ignoring: Files, empty: string, published: string]>([
    [
      'what .gitignore excludes',
      { '.gitignore': '# logs\n*.log\n/build/\n!keep.log\r\n' },
      'a.log keep.log x/b.log build/c x/build/d',
      'keep.log x/build/d',
    ],
    ['what .publishignore excludes', { '.publishignore': 'drafts/\n*.psd' }, 'drafts/a b.psd c', 'c'],
    [
      'what such files in its folders exclude, there and below, and nowhere else',
      { 'x/.gitignore': 'secret\n/top\ny/deep' },
      'secret top x/secret x/y/secret x/top x/y/top x/y/deep x/y/y/deep',
      'secret top x/y/top x/y/y/deep',
    ],
    [
      'what a .gitignore excludes, but for what a .publishignore brings back, wherever the two are',
      { 'x/.gitignore': '*', '.publishignore': '!x/a.txt' },
      'x/a.txt x/b.txt',
      'x/a.txt',
    ],
    [
      'what is built, unless that is what is meant',
      { '.gitignore': 'dist/\n', '.publishignore': '!dist/\n*.map' },
      'dist/a.js dist/sub/b.js dist/a.map',
      'dist/a.js dist/sub/b.js',
    ],
    [
      'what is hidden, unless a .publishignore brings it back; what is hidden in it stays out',
      { '.publishignore': '!.well-known/' },
      '.well-known/a.txt .well-known/.env .env',
      '.well-known/a.txt',
    ],
    ['what is hidden, though a .gitignore brings it back', { '.gitignore': '!.env' }, '.env a', 'a'],
    [
      'everything of git, and the ignore files, whatever they bring back',
      { '.publishignore': '!.*', '.gitignore': '', 'a/.git': 'gitdir: x' },
      '.git/config .env.example',
      '.env.example',
    ],
    [
      'node_modules where an ignore file says so',
      { 'a/.gitignore': 'node_modules' },
      'a/node_modules/x.js b/node_modules/x.js',
      'b/node_modules/x.js',
    ],
    [
      'nothing by lines that mean nothing',
      { '.gitignore': NOTHING, 'x/.gitignore': NOTHING },
      'a x/a',
      'a x/a',
    ],
    ['what lines after a byte order mark exclude', { '.gitignore': '\ufeffa\nb ' }, 'a b c', 'c'],
  ])('%s', async (_, ignoring, empty, kept) => {
    const folder = await folderOf({
      ...ignoring,
      ...Object.fromEntries(empty.split(' ').map((path) => [path, ''])),
    })
    expect((await published(folder)).paths).toEqual(kept.split(' '))
  })

  test('what patterns of folders with odd names exclude', async () => {
    const odd = '[slug] *!#'
    const files = { [`${odd}/.gitignore`]: '/a\nb\n', [`${odd}/a`]: '', [`${odd}/x/b`]: '', [`${odd}/c`]: '' }
    expect((await published(await folderOf({ ...files, 's/a': '' }))).paths).toEqual([`${odd}/c`, 's/a'])
  })

  test('what git leaves out, by the word of git itself', async () => {
    const folder = await folderOf({
      '.gitignore': 'a\n/b\nc/d\n*.log\n!x/keep.log\n**/f/**/g\nh/**\n\\!i\n[jk]?\nl\\ \nm/\n',
      'x/.gitignore': '!a\n/b/\nc/d\n**/z\n',
      'x/y/.gitignore': '*\n!*.txt\n!/deep/\n',
      ...Object.fromEntries(
        ['', 'x/', 'x/y/', 'x/y/deep/', 'c/', 'x/c/', 'f/1/2/', 'f/', 'h/1/', 'm/', 'x/b/'].flatMap((above) =>
          ['a', 'd', 'g', 'j1', 'q.log', 'keep.log', '!i', 'l ', 'z', 'n.txt'].map((name) => [
            above + name,
            '',
          ]),
        ),
      ),
    })
    const run = promisify(execFile)
    await run('git', ['init', '--quiet'], { cwd: folder })
    const listed = await run('git', ['ls-files', '-z', '--others', '--exclude-standard'], { cwd: folder })
    const expected = listed.stdout.split('\0').filter((path) => path !== '' && !path.endsWith('.gitignore'))
    expect(expected.length).toBeGreaterThan(20)
    expect((await published(folder)).paths.sort()).toEqual(expected.sort())
  })

  test('a link that leaves the folder, or leads to what is left out, at every depth', async () => {
    const outside = await folderOf({ 'secret.txt': 'secret', 'below/secret.txt': 'secret' })
    const folder = await folderOf({
      '.env': '',
      '.gitignore': '*.key\n',
      'real/a.txt': 'a',
      'real/b.key': 'key',
      'x/y/z.txt': '',
    })
    const links: Record<string, string> = {
      absolute: join(outside, 'secret.txt'),
      'x/y/up': '../../..',
      'x/relative': `../../${basename(outside)}/secret.txt`,
      'x/folder': outside,
      // Through a link that leaves the folder, and comes back.
      'x/back': join(outside, 'home/real/a.txt'),
      env: '.env',
      'x/key': '../real/b.key',
      nowhere: 'missing',
      loop: 'loop',
      inside: 'real',
      'x/inside.txt': '../real/a.txt',
      // Of one name but for its end.
      sibling: `${folder}-not`,
    }
    await writeFile(`${folder}-not`, 'secret')
    await symlink(folder, join(outside, 'home'))
    for (const [path, target] of Object.entries(links)) await symlink(target, join(folder, path))
    const leaves = 'it is a link out of the folder'
    const isKey = '.gitignore excludes "*.key"'
    expect(await published(folder)).toEqual({
      paths: ['inside/a.txt', 'real/a.txt', 'x/back', 'x/inside.txt', 'x/y/z.txt'],
      leftOut: {
        '.env': 'it is hidden',
        '.gitignore': 'it is an ignore file',
        absolute: leaves,
        env: 'it is a link to .env: it is hidden',
        'inside/b.key': isKey,
        loop: 'it is a broken link',
        nowhere: 'it is a broken link',
        'real/b.key': isKey,
        sibling: leaves,
        'x/folder': leaves,
        'x/key': `it is a link to real/b.key: ${isKey}`,
        'x/relative': leaves,
        'x/y/up': leaves,
      },
    })
    await rm(`${folder}-not`)
  })

  test('a folder of which nothing is left, but not one that was empty before', async () => {
    const folder = await folderOf({ 'secrets/.env': '', empty: undefined, a: '' })
    const { found } = await findAt(folder, 'x')
    expect(pathsOf(found)).toEqual(['a', 'empty/'])
  })

  test('nothing more where the published folder is a link, or hidden itself', async () => {
    const folder = await folderOf({ '.site/a.txt': '' })
    await symlink('.site', join(folder, 'link'))
    for (const name of ['.site', 'link'])
      expect(await published(join(folder, name))).toEqual({ paths: ['a.txt'], leftOut: {} })
  })
})

test('an ignore file that cannot be read ends the command: what it excludes would be published', async () => {
  const folder = await folderOf({ 'x/.gitignore/a': '', 'x/b': '' })
  await expect(findAt(folder, 'x')).rejects.toThrow(/^cannot read the ignore file x\/\.gitignore: .*EISDIR/)
})

describe('what changes between finding and reading is not read', () => {
  async function site() {
    const outside = await folderOf({ 'b.txt': 'secret' })
    const folder = await folderOf({ 'a/b.txt': 'public' })
    const { found } = await findAt(folder, 'site')
    return { outside, folder, found, path: join(folder, 'a/b.txt') }
  }
  const CHANGED = 'changed while it was published: try again'
  /** Puts a link in the place of what is there. */
  const linked = async (to: string, path: string): Promise<void> => {
    await rm(path, { recursive: true })
    await symlink(to, path)
  }

  test.each<[what: string, change: (made: Awaited<ReturnType<typeof site>>) => Promise<unknown>]>([
    ['becomes a link out of the folder', ({ outside, path }) => linked(join(outside, 'b.txt'), path)],
    ['is in a folder that becomes such a link', ({ outside, folder }) => linked(outside, join(folder, 'a'))],
    [
      'is moved, and a link leads there',
      async ({ outside, folder }) => {
        await rename(join(folder, 'a'), join(outside, 'a'))
        await symlink(join(outside, 'a'), join(folder, 'a'))
      },
    ],
    [
      'is another one now',
      async ({ folder, path }) => {
        await writeFile(join(folder, 'new'), 'other!')
        await rename(join(folder, 'new'), path)
      },
    ],
    [
      'is a pipe now',
      async ({ path }) => {
        await rm(path)
        await promisify(execFile)('mkfifo', [path])
      },
    ],
    ['grows', ({ path }) => appendFile(path, 'x')],
    ['shrinks', ({ path }) => writeFile(path, '')],
  ])('a file that %s', async (_, change) => {
    const made = await site()
    await change(made)
    await expect(readEntries(made.found)).rejects.toThrow(`${made.path} ${CHANGED}`)
  })

  test('a file that is published as a stream', async () => {
    const { outside, path } = await site()
    const { found } = (await findAt(path, 'b.txt')) as { found: FoundFile }
    expect(countOf(found)).toBe(1)
    await linked(join(outside, 'b.txt'), path)
    await expect(hashOf(found)).rejects.toThrow(CHANGED)
    await expect(readChunks(found, 10).next()).rejects.toThrow(CHANGED)
  })
})

describe('the command', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start()
  })
  const lines = (text: string): string[] => text.trimEnd().split('\n')

  test('says what it leaves out and what it would cost, and publishes the rest', async () => {
    const folder = await folderOf({
      '.env': 'SECRET=1',
      '.publishignore': '!.well-known/',
      '.well-known/a.txt': 'hidden',
      'index.html': 'hello',
    })
    const { code, stdout, stderr } = await cli.call(['publish', folder, '--json', '--url', server.url])
    expect(code).toBe(0)
    expect(lines(stderr)).toEqual([
      'minetree: leaving out .env: it is hidden',
      'minetree: leaving out .publishignore: it is an ignore file',
      expect.stringMatching(
        /^minetree: publishing 2 files, 11 B, in 1 transaction of \d{3} bytes: on the live network a fee of about \d{2} satoshis \(100 per 1,000 bytes\), on a local network none$/,
      ),
    ])
    const result = JSON.parse(stdout)
    expect(result).toMatchObject({
      files: 2,
      bytes: 11,
      transactions: 1,
      leftOut: [
        { path: '.env', reason: 'it is hidden' },
        { path: '.publishignore', reason: 'it is an ignore file' },
      ],
    })
    const root = `/content/${result.outpoint}`
    expect((await server.ask(`${root}/.well-known/a.txt`)).body.toString()).toBe('hidden')
    const directory = (await server.ask(`${root}?raw`)).json
    expect(Object.keys(directory as object)).toEqual(['.well-known', 'index.html'])
  })

  test('counts what is left out after twenty, and lists all of it as JSON', async () => {
    const hidden = Array.from({ length: 1023 }, (_, i) => [`.${i}`, ''])
    const folder = await folderOf({ ...Object.fromEntries(hidden), 'index.html': '' })
    const { stdout, stderr } = await cli.call(['publish', folder, '--json', '--url', server.url])
    expect(lines(stderr)).toHaveLength(22)
    expect(lines(stderr)[20]).toBe('minetree: leaving out 1,003 more')
    expect(JSON.parse(stdout).leftOut).toHaveLength(1023)
  })

  test('publishes nothing where everything is left out, and says what to do', async () => {
    const folder = await folderOf({ '.env': '', 'a/.b': '' })
    const asked: string[] = []
    const other = await serving((request, response) => {
      asked.push(request.url ?? '')
      response.end()
    })
    expect(await cli.run(['publish', folder, '--url', other.url])).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: `minetree: nothing to publish: every file in ${folder} is left out (.env: it is hidden); name a file, or include files again in ${folder}/.publishignore, as !.env\n`,
    })
    expect(asked).toEqual([])
  })

  test('publishes a hidden file that is named, and what a link that is named leads to', async () => {
    const outside = await folderOf({ 'a.txt': 'of my own' })
    const folder = await folderOf({ '.hidden.txt': 'named' })
    await symlink(join(outside, 'a.txt'), join(folder, 'link.txt'))
    for (const [name, content] of [
      ['.hidden.txt', 'named'],
      ['link.txt', 'of my own'],
    ] as const) {
      const { code, stdout } = await cli.call(['publish', join(folder, name), '--url', server.url])
      expect(code).toBe(0)
      const { host: Host, pathname } = new URL(stdout.trim())
      expect((await server.ask(pathname, { headers: { Host } })).body.toString()).toBe(content)
    }
  })

  test('says the cost of a stream, whose transactions are as large as it says but for what pays', async () => {
    const path = join(await folderOf({ 'a.bin': 'x'.repeat(25_000) }), 'a.bin')
    const { stdout, stderr } = await cli.call([
      ...['publish', path, '--json', '--chunk-size', '10000', '--url', server.url],
    ])
    const [, bytes = '', satoshis = ''] =
      /in 3 transactions of ([\d,]+) bytes: on the live network a fee of about ([\d,]+) satoshis/.exec(
        stderr,
      ) ?? []
    const count = (text: string): number => Number(text.replaceAll(',', ''))
    expect(count(bytes)).toBeGreaterThan(25_000)
    expect(count(bytes)).toBeLessThan(27_000)
    expect(Math.abs(count(satoshis) - count(bytes) / 10)).toBeLessThan(3)
    expect(JSON.parse(stdout)).toMatchObject({ transactions: 3, files: 1, leftOut: [] })
  })
})
