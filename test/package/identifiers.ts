import ts from "typescript";

/** A name in a source, and its line. */
export interface Identifier {
  readonly name: string;
  readonly line: number;
}

/** The names of all variables and parameters, also of those in a pattern. */
export function variablesIn(source: string, fileName = "source.ts"): Identifier[] {
  const file = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest);
  const found: Identifier[] = [];
  const visit = (node: ts.Node): void => {
    const isDeclared = ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node);
    if (isDeclared && ts.isIdentifier(node.name)) {
      const { line } = file.getLineAndCharacterOfPosition(node.name.getStart(file));
      found.push({ name: node.name.text, line: line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The names that a module declares and exports. Those that it has imported are left out, and so is the default. */
export function exportsOf(source: string, fileName = "source.ts"): ReadonlySet<string> {
  const { statements } = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest);
  const imported = new Set<string>();
  const exported = new Set<string>();
  for (const statement of statements) {
    if (ts.isImportDeclaration(statement)) {
      const { name, namedBindings: named } = statement.importClause ?? {};
      if (name !== undefined) imported.add(name.text);
      if (named !== undefined && ts.isNamedImports(named))
        for (const element of named.elements) imported.add(element.name.text);
    } else if (ts.isExportDeclaration(statement)) {
      const { exportClause: clause, moduleSpecifier } = statement;
      if (moduleSpecifier !== undefined || clause === undefined || !ts.isNamedExports(clause)) continue;
      for (const { name, propertyName = name } of clause.elements)
        if (!imported.has(propertyName.text)) exported.add(name.text);
    } else if (isExported(statement)) for (const name of namesOf(statement)) exported.add(name);
  }
  return exported;
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  const kinds = new Set(modifiers?.map(({ kind }) => kind));
  return kinds.has(ts.SyntaxKind.ExportKeyword) && !kinds.has(ts.SyntaxKind.DefaultKeyword);
}

function namesOf(statement: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(statement)) {
    const { declarations } = statement.declarationList;
    return declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []));
  }
  const { name } = statement as ts.Statement & { readonly name?: ts.Node };
  return name !== undefined && ts.isIdentifier(name) ? [name.text] : [];
}
