import type { FolderEntry } from '../../publish/content-tree.js'

/** The files that somebody chose to publish, not read yet. */
export interface Chosen {
  /** Whether the files are published as a folder. If not, there is one file, published as it is. */
  isFolder: boolean
  files: ChosenFile[]
  leftOut: string[]
}

interface ChosenFile {
  /** The path below the folder: `assets/app.js`. */
  path: string
  file: File
}

/** The most files, and the most bytes in all, that are read. */
const MOST_FILES = 5_000
const MOST_BYTES = 64 * 1024 * 1024
/** Files that exclude others from publishing: this page does not read them. */
const IGNORE_FILES = ['.gitignore', '.publishignore']

/** The files of a file field: a folder, with whose name the paths begin, or several files. */
export function chosenIn(files: Iterable<File>): Chosen {
  const found = [...files].map((file) => ({
    path: file.webkitRelativePath.replace(/^[^/]*\//, '') || file.name,
    file,
  }))
  return checked(found, { isFolder: true })
}

/** The files of a dropped folder, or of any other drop. */
export async function droppedIn(items: Iterable<DataTransferItem>): Promise<Chosen> {
  // All at once: the items are gone after the event.
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  const [only] = entries
  const isFolder = entries.length === 1 && only?.isDirectory === true
  const found: ChosenFile[] = []
  for (const entry of isFolder ? await entriesOf(only as FileSystemDirectoryEntry) : entries)
    await walk(entry, { path: entry.name, found })
  return checked(found, { isFolder: isFolder || entries.length > 1 })
}

async function walk(
  entry: FileSystemEntry,
  { path, found }: { path: string; found: ChosenFile[] },
): Promise<void> {
  if (found.length > MOST_FILES) throw tooMany()
  if (entry.isDirectory) {
    for (const each of await entriesOf(entry as FileSystemDirectoryEntry))
      await walk(each, { path: `${path}/${each.name}`, found })
    return
  }
  const file = await new Promise<File>((resolve, reject) =>
    (entry as FileSystemFileEntry).file(resolve, reject),
  )
  found.push({ path, file })
}

async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    // `readEntries` gives one part at a time, and finally none.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (some.length === 0) return all
    all.push(...some)
    if (all.length > MOST_FILES) throw tooMany()
  }
}

/** @throws Error if there is nothing to publish, too much, or a file that excludes others. */
function checked(all: ChosenFile[], { isFolder }: Pick<Chosen, 'isFolder'>): Chosen {
  const ignoring = all.find(({ path }) => IGNORE_FILES.includes(path.split('/').at(-1) ?? ''))
  if (ignoring !== undefined)
    throw new Error(
      `${ignoring.path} says what not to publish, but this page cannot read it: choose the folder of the built site, or use “minetree publish”`,
    )
  const isHidden = ({ path }: ChosenFile): boolean => path.split('/').some((part) => part.startsWith('.'))
  const files = all.filter((each) => !isHidden(each))
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0)
  if (files.length === 0) throw new Error('there is nothing in it to publish')
  if (files.length > MOST_FILES) throw tooMany()
  if (bytes > MOST_BYTES)
    throw new Error(`it has ${bytes} bytes, and this page publishes at most ${MOST_BYTES}`)
  return { isFolder, files, leftOut: all.filter(isHidden).map(({ path }) => path) }
}

function tooMany(): Error {
  return new Error(`it has more than ${MOST_FILES} files`)
}

export async function readChosen({ files, isFolder }: Chosen): Promise<FolderEntry> {
  const root: FolderEntry[] = []
  const folders = new Map<string, FolderEntry[]>([['', root]])
  const folderAt = (path: string): FolderEntry[] => {
    const known = folders.get(path)
    if (known !== undefined) return known
    const at = path.lastIndexOf('/')
    const entries: FolderEntry[] = []
    folderAt(at < 0 ? '' : path.slice(0, at)).push({ name: path.slice(at + 1), entries })
    folders.set(path, entries)
    return entries
  }
  for (const { path, file } of files) {
    const at = path.lastIndexOf('/')
    const bytes = new Uint8Array(await file.arrayBuffer())
    folderAt(at < 0 ? '' : path.slice(0, at)).push({ name: path.slice(at + 1), bytes })
  }
  const [only] = root
  return isFolder || only === undefined ? { name: '', entries: root } : only
}
