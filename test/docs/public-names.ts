import { join } from "node:path";
import ts from "typescript";
import { packagesIn, root, shown } from "../package/workspace.ts";

/** A specifier that users import, and its source. */
export interface Entry {
  readonly specifier: string;
  readonly file: string;
}

/** Every entry point of every package. */
export const entries: readonly Entry[] = packagesIn("packages").flatMap(({ directory, manifest }) =>
  Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    const { "payhooks-source": source } = target as { readonly "payhooks-source"?: string };
    const specifier = manifest.name + subpath.slice(1);
    return source === undefined ? [] : [{ specifier, file: join(directory, source) }];
  }),
);

const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
const program = ts.createProgram(
  entries.map(({ file }) => file),
  options,
);
const checker = program.getTypeChecker();

/** A declaration that users can see, with the text of its docstrings. */
export interface Declared {
  readonly name: string;
  readonly where: string;
  readonly kind: "function" | "method" | "type" | "other";
  readonly text: string;
}

/** The names that an entry point exports, and the members of it, function bodies left out. */
export function declaredIn({ file }: Entry): {
  readonly names: ReadonlySet<string>;
  readonly declared: readonly Declared[];
} {
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${file} exports nothing`);
  const exported = checker.getExportsOfModule(module);
  const declared: Declared[] = [];
  for (const symbol of exported) {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    const visit = (node: ts.Node): void => {
      if (ts.isBlock(node)) return;
      const text = ts
        .getJSDocCommentsAndTags(node)
        .map((comment) => comment.getText())
        .join("\n");
      const member = (node as { readonly name?: ts.Node }).name?.getText();
      const name = member === undefined || member === symbol.name ? symbol.name : `${symbol.name}.${member}`;
      declared.push({ name, where: shown(node.getSourceFile().fileName), kind: kindOf(node), text });
      ts.forEachChild(node, visit);
    };
    target.declarations?.forEach(visit);
  }
  return { names: new Set(exported.map(({ name }) => name)), declared };
}

/** An editor's text about a member of an exported type. */
export function docsOfMember({ file }: Entry, type: string, member: string): string {
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  const exported = module && checker.getExportsOfModule(module).find(({ name }) => name === type);
  if (exported === undefined) throw new Error(`${file} exports no ${type}`);
  const symbol = checker.getPropertyOfType(
    checker.getDeclaredTypeOfSymbol(checker.getAliasedSymbol(exported)),
    member,
  );
  const tags = symbol?.getJsDocTags(checker).map(({ text }) => ts.displayPartsToString(text)) ?? [];
  return [ts.displayPartsToString(symbol?.getDocumentationComment(checker)), ...tags].join("\n");
}

function kindOf(node: ts.Node): Declared["kind"] {
  if (ts.isFunctionDeclaration(node)) return "function";
  if (ts.isMethodSignature(node) && ts.isInterfaceDeclaration(node.parent)) return "method";
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node))
    return "type";
  return "other";
}
