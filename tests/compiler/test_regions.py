"""Kernels with barriers that are made at random, on the host as C and by an interpreter of the tree."""
import random

import interpret
import numpy as np
import pytest
import trees
from trees import assign, for_, gid, global_, i64, if_, kernel, lid, load, op, store, var

from drupe.compiler import tree
from drupe.compiler.tree import Barrier, Break, Buffer, Continue, For, Query, Return, Select, While

VARYING, UNIFORM = ("x", "y", "z"), ("u", "v")


class Maker:
    """Makes one kernel. Each work-item writes to its own places only, and reads those of others behind barriers."""

    def __init__(self, seed, dims=1, returns=True):
        self.random, self.dims, self.returns, self.fresh = random.Random(seed), dims, returns, 0
        self.out, self.given = global_("out", "int64"), global_("given", "int64", True)
        self.local = Buffer("s", "int64", "local")
        self.private = [Buffer("p", "int64", "private", 3, zeroed=True), Buffer("q", "int64", "private", 2,
            zeroed=True)]
        self.view = Buffer("w", "int64", "private")
        self.uses_view = self.random.random() < 0.3
        self.locals = dict.fromkeys((*VARYING, *UNIFORM, "me", "gid", "n"), "int64")
        self.depth = 0

    # --- Expressions ---

    def uniform(self):
        r = self.random
        kind = r.randrange(5)
        if kind < 2:
            return var(r.choice(UNIFORM))
        if kind == 2:
            return i64(r.randrange(-3, 9))
        if kind == 3:
            return var("param")
        return op(r.choice("+-"), self.uniform(), i64(r.randrange(4)), wraps=True)

    def varying(self, depth=2):
        r = self.random
        kind = r.randrange(8 if depth else 4)
        if kind < 2:
            return var(r.choice(VARYING))
        if kind == 2:
            return var(r.choice(("me", "gid", *UNIFORM)))
        if kind == 3:
            return load(r.choice(self.private[:2]), r.randrange(2))
        if kind == 4:
            return load(self.given, var("gid"))
        if kind == 5:
            return Select("int64", self.condition(depth - 1), self.varying(depth - 1), self.varying(depth - 1))
        return op(r.choice("+-*^"), self.varying(depth - 1), self.varying(depth - 1), wraps=True)

    def condition(self, depth=1):
        return op(self.random.choice(("<", ">", "==", "!=")), self.varying(depth), self.varying(depth))

    def even(self):
        return op(self.random.choice(("<", ">=", "!=")), self.uniform(), self.uniform())

    # --- Statements of one region ---

    def simple(self, looped=False):
        r = self.random
        kind = r.randrange(9)
        if kind < 3:
            return assign(r.choice(VARYING), self.varying())
        if kind == 3:
            return store(r.choice(self.private), r.randrange(2), self.varying())
        if kind == 4:
            return store(self.out, var("gid"), self.varying())
        if kind == 5:
            return store(self.private[0], op("&", self.varying(1), i64(1)), self.varying(1))
        if kind == 6:
            return if_(self.condition(), self.many(2), self.many(1) if r.random() < 0.5 else [])
        if kind == 7 and self.returns and r.random() < 0.3:
            return if_(op("==", op("&", self.varying(1), i64(7)), i64(3)), [Return(1)])
        name = r.choice(("i", "j"))
        self.locals[name] = "int64"
        body = self.many(2)
        if r.random() < 0.3:
            body.append(if_(self.condition(), [r.choice((Break(1), Continue(1)))]))
        body.append(assign("x", op("+", var("x"), var(name), wraps=True)))
        return for_(name, r.randrange(2), r.randrange(4), body, other=self.many(1) if r.random() < 0.2 else [])

    def many(self, count):
        return [self.simple() for _ in range(self.random.randrange(count) + 1)]

    def exchange(self):
        """Values go to another work-item of the group."""
        shift = i64(self.random.randrange(1, 4))
        size = var("n")
        return [Barrier(1), store(self.local, var("me"), self.varying()), Barrier(1, 3),
                assign(self.random.choice(VARYING), load(self.local, op("%", op("+", var("me"), shift), size)))]

    # --- Statements of the group ---

    def group(self, count, looped=False):
        r, made = self.random, []
        for _ in range(r.randrange(count) + 1):
            kind = r.randrange(7)
            if kind < 2:
                made += self.exchange()
            elif kind == 2:
                made.append(assign(r.choice(UNIFORM), self.uniform()))
            elif kind < 5 and self.depth < 2:
                self.depth += 1
                made += [self.branch, self.counting, self.waiting][r.randrange(3)](looped)
                self.depth -= 1
            else:
                made += self.many(2)
        return made

    def branch(self, looped):
        then = self.group(2, looped) + self.exchange()
        if looped and self.random.random() < 0.4:
            then.append(self.random.choice((Break(1), Continue(1))))
        return [if_(self.even(), then, self.group(1, looped) if self.random.random() < 0.4 else [])]

    def counting(self, looped):
        self.fresh += 1
        name = "k%d" % self.fresh
        self.locals[name] = "int64"
        start = self.random.choice((i64(0), i64(self.random.randrange(2)), var("me")))
        step = self.random.choice((1, 2, -1))
        stop = op("+", start, i64(self.random.randrange(4) * (1 if step > 0 else -1)))
        body = self.group(2, True) + self.exchange()
        if self.random.random() < 0.4:
            body.insert(0, assign("y", op("+", var("y"), var(name), wraps=True)))
        if self.random.random() < 0.2:
            body.append(assign(name, self.varying()))
        loop = For(1, name, start, stop, i64(step), body, self.group(1, looped) if self.random.random() < 0.3 else [])
        before = [assign(name, i64(5))]
        after = [assign("z", op("^", var("z"), var(name)))] if self.random.random() < 0.5 else []
        return before + [loop] + after

    def waiting(self, looped):
        self.fresh += 1
        name = "c%d" % self.fresh
        self.locals[name] = "int64"
        count = [assign(name, op("-", var(name), i64(1)))]
        cond = op(">", var(name), i64(0))
        if self.random.random() < 0.3:  # the same, though it is not seen
            cond = op(">", op("+", var(name), op("-", var("me"), var("me"))), i64(0))
        return [assign(name, i64(self.random.randrange(4))),
                While(1, cond, count + self.group(2, True) + self.exchange(),
                      self.many(1) if self.random.random() < 0.2 else [])]

    def made(self):
        size = Query("int64", "local_size", 0)
        me = lid(0)
        for dim in range(1, self.dims):
            me = op("+", op("*", me, Query("int64", "local_size", dim)), lid(dim))
            size = op("*", size, Query("int64", "local_size", dim))
        place = gid(0)
        for dim in range(1, self.dims):
            place = op("+", op("*", place, Query("int64", "global_size", dim)), gid(dim))
        body = [assign("me", me), assign("gid", place), assign("n", size)]
        body.append(store(self.local, var("me"), i64(0)))  # of those that end before they write to it
        body += [assign(name, self.random.choice((i64(at), var("gid"), var("me")))) for at, name in enumerate(VARYING)]
        body += [assign(name, i64(at + 2)) for at, name in enumerate(UNIFORM)]
        body += [assign(name, i64(0)) for name in ("i", "j")]
        self.locals.update(i="int64", j="int64")
        buffers = list(self.private)
        if self.uses_view:
            buffers.append(self.view)
            body.append(tree.Point(1, self.view, self.private[0], Select("int64", op("<", var("me"), i64(2)), i64(0),
                i64(1))))
            self.private.append(self.view)
        body += self.group(4) + self.exchange()
        last = var("gid")
        for name in (*VARYING, *UNIFORM):
            last = op("+", op("*", last, i64(31), wraps=True), var(name), wraps=True)
        for one in self.private:
            last = op("^", last, load(one, 1))
        body.append(store(self.out, var("gid"), last))
        return kernel("made", [self.out, self.given, self.local, ("param", "int64")], body, locals=self.locals,
                      buffers=buffers, dims=self.dims, grouped=True)


SPACES = {1: ((24,), (6,)), 2: ((4, 6), (2, 3)), 3: ((2, 4, 3), (2, 2, 3))}


class Plain(Maker):
    """The same without barriers."""

    def exchange(self):
        return [assign("x", load(self.given, var("gid")))]


def compare(seed, target, folder, maker=Maker):
    dims = seed % 3 + 1
    function = maker(seed, dims, maker is Plain or not target.startswith("opencl")).made()
    size, local = SPACES[dims]
    given = np.random.default_rng(seed).integers(-5, 9, int(np.prod(size)))
    want = [0] * len(given)
    interpret.run(function, [want, given.tolist(), int(np.prod(local)), 2], size, local)
    out = np.zeros(len(given), "int64")
    trees.run(function, [out, given, 8 * int(np.prod(local)), 2], size, local, target=target, folder=folder)
    assert out.tolist() == want, seed


@pytest.mark.parametrize("target, seeds", list(zip(trees.TARGETS, (24, 120, 9, 40))))
def test_random_kernels(target, seeds, tmp_path):
    if target.marks[0].args[0]:
        pytest.skip(target.marks[0].kwargs["reason"])
    for seed in range(seeds):
        compare(seed, target.values[0], tmp_path)


@pytest.mark.parametrize("target, seeds", list(zip(trees.TARGETS, (8, 60, 6, 40))))
def test_random_kernels_without_barriers(target, seeds, tmp_path):
    if target.marks[0].args[0]:
        pytest.skip(target.marks[0].kwargs["reason"])
    for seed in range(1000, 1000 + seeds):
        compare(seed, target.values[0], tmp_path, Plain)
