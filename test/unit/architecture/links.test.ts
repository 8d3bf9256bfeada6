import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')
const docs = readdirSync(join(root, 'docs'), { recursive: true }).map(String)
const pages = [
  ...['README.md', 'CHANGELOG.md'],
  ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
]
const read = (path: string): string => readFileSync(path, 'utf8')

/** What a page shows as text: code and diagrams link nowhere. */
const withoutCode = (text: string): string => text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '')

/** The targets of a page's links and pictures that are not URLs, as `file` or `file#heading`. */
function relativeLinks(page: string): string[] {
  return [
    ...withoutCode(read(join(root, page))).matchAll(/\]\(([^)\s]+)\)|<[^<>]* (?:src|srcset)="([^"]+)"/g),
  ]
    .map(([, target = '', picture = target]) => picture)
    .filter((target) => !/^[a-z]+:/.test(target))
}

/** The anchors that GitHub gives to the headings of a page. */
function anchors(path: string): string[] {
  return [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

test.each(pages)('every relative link in %s resolves', (page) => {
  const broken = relativeLinks(page).filter((target) => {
    const [file = '', heading] = target.split('#')
    const path = file === '' ? join(root, page) : resolve(root, page, '..', file)
    return !existsSync(path) || (heading !== undefined && !anchors(path).includes(heading))
  })
  expect(broken).toEqual([])
})

test('README.md lists every page', () => {
  const listed = relativeLinks('README.md').filter((target) => target.startsWith('docs/'))
  const all = docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
  expect([...new Set(listed)].toSorted()).toEqual(all.toSorted())
})

test.each(pages.filter((page) => page !== 'CHANGELOG.md'))('every file that %s names exists', (page) => {
  const named = [
    ...read(join(root, page)).matchAll(
      /(?<=[\s`])(?:assets|backend|bench|docs|src|test|trials)\/[\w./-]*\w/g,
    ),
  ]
  expect(named.map(([path]) => path).filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('every page that a comment names exists', () => {
  const files = ['backend/src', 'src', 'test', 'bench', 'trials'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
  )
  const gone = files
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) =>
      [...read(join(root, file)).matchAll(/(?<![\w/.])(?:docs|spec)\/[\w/-]+\.md/g)]
        .filter(([page]) => !existsSync(join(root, page)))
        .map(([page]) => `${file}: ${page}`),
    )
  expect(gone).toEqual([])
})

test('pictures have a text in place of them', () => {
  const pictures = pages.flatMap((page) => withoutCode(read(join(root, page))).match(/<img [^>]*>/g) ?? [])
  expect(pictures.length).toBeGreaterThan(0)
  expect(pictures.filter((picture) => !/ alt="[^"]{20,}"/.test(picture))).toEqual([])
})

test('every drawing is shown on a page, with a text in place of it', () => {
  const text = pages.map((page) => read(join(root, page))).join('\n')
  const shown = [...text.matchAll(/!\[[^\]]{20,}\]\((?:docs\/)?drawings\/([\w.]+)\)/g)].map(
    ([, file]) => file,
  )
  expect([...new Set(shown)].toSorted()).toEqual(readdirSync(join(root, 'docs/drawings')).toSorted())
})
